"""Columns of a sample: kinds, scaling, and columns that make the clusters alone."""
