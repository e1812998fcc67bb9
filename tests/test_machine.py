"""What this process asks of the system."""

import subprocess
import sys

import pytest

from mmcnb._machine import KEPT_BYTES

FAULTS = """
import resource
import numpy as np
from mmcnb._machine import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        np.ones({n_bytes}, np.int8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

mapped = faults()
keep_freed_memory()
faults()
print(mapped, faults())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the C library of Linux alone has these settings")
def test_a_process_that_dask_started_takes_memory_from_the_system_once():
    done = subprocess.run(
        [sys.executable, "-c", FAULTS.format(n_bytes=KEPT_BYTES // 8)],
        env={"MALLOC_TRIM_THRESHOLD_": "65536"},
        capture_output=True,
        text=True,
        check=True,
    )
    mapped, kept = map(int, done.stdout.split())
    assert kept < mapped / 10
