"""Columns of a sample: kinds, scaling, and columns that determine clusters alone."""
