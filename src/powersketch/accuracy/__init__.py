"""Certificates, statistical dimension and sizes of feature maps."""
