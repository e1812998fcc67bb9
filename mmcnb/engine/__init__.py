"""Passes over blocks of rows in threads or on Dask, with checkpoints and plans."""
