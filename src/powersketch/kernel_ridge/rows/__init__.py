"""The rows of a fit, and their columns as the kernel sees them."""
