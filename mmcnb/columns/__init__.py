"""Columns of a sample: kinds, scaling, and clusters that few columns determine."""
