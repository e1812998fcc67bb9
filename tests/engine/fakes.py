"""Samples and passes whose every step can be watched."""

import logging
import threading
from contextlib import contextmanager

import numpy as np

from mmcnb.engine.run import ThreadEngine
from mmcnb.samples import Samples


class FakeSamples(Samples):
    """Rows of an array behind any chunks; counts how often each row is read."""

    is_sparse = False
    checksummed = True
    name = "fake"
    path = "fake"
    is_reopenable = True

    def __init__(self, X, chunk_rows=4096, row_bytes=None):
        self.X = np.ascontiguousarray(X)
        self.chunk_rows = chunk_rows
        self.n_samples, self.n_features = X.shape
        self.dtype = self.stored_dtype = X.dtype
        self.row_bytes = float(row_bytes or X.itemsize * X.shape[1])
        self.reads = np.zeros(self.n_samples, np.int64)
        self.lock = threading.Lock()

    def block(self, start, stop):
        with self.lock:
            self.reads[start:stop] += 1
        return self.X[start:stop]

    def gather(self, rows):
        return self.X[rows]


class OrderedSum:
    """Sum of the columns, with the order in which blocks were combined."""

    def block(self, rows, start, stop):
        return [(start, stop)], np.ones(stop - start) @ rows

    def combine(self, total, other):
        return total[0] + other[0], total[1] + other[1]


def run(pass_, samples, n_jobs=None):
    """The total of one pass, with threads."""
    with ThreadEngine(n_jobs) as engine:
        return engine.run(pass_, samples)


class PassHandler(logging.Handler):
    """Calls a function with the number of passes over the rows of a fit, as the log tells that they end."""

    def __init__(self, action):
        super().__init__()
        self.action = action
        self.passes = 0

    def emit(self, record):
        if record.getMessage().startswith(("read", "swept")):
            self.passes += 1
            self.action(self.passes)


@contextmanager
def after_each_pass(action):
    """Call a function with the number of passes so far, after each pass over the rows of a fit."""
    logger = logging.getLogger("mmcnb")
    level = logger.level
    handler = PassHandler(action)
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
