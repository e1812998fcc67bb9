"""Columns of a sample: kinds, scaling, and clusters that mirror one or two columns."""
