"""Clusters by regularised least squares."""
