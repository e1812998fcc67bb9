"""Run a command and watch the memory of its processes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import mmcnb
from mmcnb.errors import InputError

MIB = 2**20
POLL_SECONDS = 0.02


def run_and_watch(command: list[str]) -> tuple[dict[str, Any], int]:
    """Run a command that prints JSON, and watch the memory of its processes.

    Parameters
    ----------
    command : list of str
        The command.

    Returns
    -------
    report : dict
        What it printed.
    peak : int
        Largest sum, over the command's process and its descendants, of their peak resident bytes; 0 where
        the system does not tell.
    """
    peak = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            peak = max(peak, _tree_peak(process.pid))
            time.sleep(POLL_SECONDS)
        printed = process.stdout.read() if process.stdout else ""
    if process.returncode != 0:
        raise InputError(f'"{" ".join(command[2:5])}" ended with code {process.returncode}; see above.')
    return json.loads(printed), peak


def fit_store(store: str, seed: int, memory_limit: str) -> tuple[dict[str, Any], np.ndarray]:
    """Run ``mmcnb fit`` on a store within a limit, in a process that is watched.

    Parameters
    ----------
    store : str
        Path of the store; model and labels are written beside it.
    seed : int
        Of the fit.
    memory_limit : str
        Such as "1GiB".

    Returns
    -------
    measures : dict
        Seconds of the fit and of the labels, peak memory, reads, sweeps, gap.
    labels : ndarray of shape (n_samples,)
        Cluster of each row.
    """
    import zarr

    model, labels = Path(store).with_suffix(f".{seed}.model"), Path(store).with_suffix(f".{seed}.labels.zarr")
    words = ["fit", store, "--model", model, "--labels", labels, "--memory-limit", memory_limit]
    command = [sys.executable, "-m", "mmcnb", *map(str, words), "--random-state", str(seed), "--json"]
    report, polled = run_and_watch(command)
    history = mmcnb.load(model).history_
    measures = {
        "seconds": report["fit_seconds"],
        "label_seconds": report["labels_seconds"],
        "peak_mib": max(report["peak_memory_bytes"], polled) / MIB,
        "reads": int(history["reads"].iloc[-1]),
        "sweeps": int(history["sweeps"].iloc[-1]),
        "gap": report["gap"],
    }
    return measures, np.asarray(zarr.open_array(str(labels), mode="r")[:])


def _tree_peak(pid: int) -> int:
    try:
        folder = Path(f"/proc/{pid}")
        status = (folder / "status").read_text()
        children = [
            child for task in (folder / "task").iterdir() for child in (task / "children").read_text().split()
        ]
    except OSError:  # it has ended, or the system has no /proc
        return 0
    own = next((int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:")), 0)
    return own + sum(_tree_peak(int(child)) for child in children)
