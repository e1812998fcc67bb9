"""Kernels, feature maps and decision rules: from rows to numbers that methods work on."""
