"""Solves linear systems with kernel matrices, given an operator and a preconditioner."""
