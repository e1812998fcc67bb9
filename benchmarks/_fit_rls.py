"""``python -m benchmarks._fit_rls STORE LABELS K LIMIT``: fit and label within a limit; prints JSON."""

from __future__ import annotations

import json
import sys
import time

import mmcnb
from benchmarks._compare import compile_seconds
from mmcnb.samples import open_samples


def main(store: str, labels: str, n_clusters: str, memory_limit: str) -> None:
    """Fit `UnsupervisedRLS` to a store, and write the labels of its rows.

    Parameters
    ----------
    store, labels : str
        Zarr stores to read and to write.
    n_clusters, memory_limit : str
        Parameters of the estimator.
    """
    model = mmcnb.UnsupervisedRLS(int(n_clusters), memory_limit=memory_limit, random_state=0)
    samples = open_samples(store)
    compiled = compile_seconds(samples.block(0, min(400, samples.n_samples)), model)
    started = time.perf_counter()
    model.fit_model(store)
    fitted = time.perf_counter()
    model.predict(store, out=labels)
    ended = time.perf_counter()
    report = {
        "fit_seconds": fitted - started,
        "label_seconds": ended - fitted,
        "compile_seconds": compiled,
        "reads": int(model.history_["reads"].iloc[-1]) + 1,  # one for the labels
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main(*sys.argv[1:])
