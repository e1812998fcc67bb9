"""Peak resident memory of this process."""

import sys
from pathlib import Path

PROCESS_STATUS = Path("/proc/self/status")


def peak_memory() -> int:
    """Return the most resident memory this process has had, in bytes.

    Returns
    -------
    int
        From the kernel's own count on Linux; elsewhere from ``getrusage``.
    """
    if PROCESS_STATUS.exists():
        # getrusage would count what the parent had before it started this program.
        fields = dict(line.split(":", 1) for line in PROCESS_STATUS.read_text().splitlines())
        return int(fields["VmHWM"].split()[0]) * 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
