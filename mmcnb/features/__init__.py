"""Kernels, feature maps and decision rules."""
