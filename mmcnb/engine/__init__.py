"""Passes over blocks of rows: threads, Dask, checkpoints, memory, and the session of one fit."""
