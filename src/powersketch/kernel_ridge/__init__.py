"""Kernel ridge regression and classification on feature maps."""
