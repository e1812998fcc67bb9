"""Explain how clusters differ from each other, in figures and in words."""
