"""Rows on several machines: speed, memory and failures of clusters, and a model of large ones."""
