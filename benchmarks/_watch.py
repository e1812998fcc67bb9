"""Run a command and watch the memory of its processes."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

from mmcnb._errors import InputError

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
