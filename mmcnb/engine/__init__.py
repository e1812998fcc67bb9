"""Passes over blocks of rows: threads, Dask, checkpoints, plans and sessions."""
