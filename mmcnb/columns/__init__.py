"""Columns of raw tables: how they are made comparable, and whether a single one makes the clusters."""
