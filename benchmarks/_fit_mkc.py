"""``python -m benchmarks._fit_mkc STORE LABELS K``: fit and label; prints JSON."""

from __future__ import annotations

import json
import sys
import time

import mmcnb
from benchmarks._compare import compile_seconds
from mmcnb.samples import open_samples


def main(store: str, labels: str, n_clusters: str) -> None:
    """Fit `MultipleKernelClustering` to a store, and write the labels of its rows.

    Parameters
    ----------
    store, labels : str
        Zarr stores to read and to write.
    n_clusters : str
        Parameter of the estimator.
    """
    model = mmcnb.MultipleKernelClustering(int(n_clusters), random_state=0)
    samples = open_samples(store)
    compiled = compile_seconds(samples.block(0, min(400, samples.n_samples)), model)
    started = time.perf_counter()
    model.fit_model(store)
    model.predict(store, out=labels)
    seconds = {"seconds": time.perf_counter() - started, "compile_seconds": compiled}
    weights = dict(zip(model.kernel_names_, model.kernel_weights_.tolist(), strict=True))
    print(json.dumps(seconds | {"weights": weights}))


if __name__ == "__main__":
    main(*sys.argv[1:])
