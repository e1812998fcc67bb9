"""Explain what sets clusters apart, in figures and in words."""
