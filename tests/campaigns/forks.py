"""``python -m tests.campaigns.forks``: a process that has all in memory, and forks for each command.

Each line on standard input is a JSON object: ``program``, ``words``, and ``folder``,
where the command runs and beside which its output goes. The child says when it begins,
the parent says how it ended.
"""

import gc
import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, TextIO


class Forks:
    """Runs commands in forks of one process, or in processes of their own."""

    def __init__(self, folder: Path, warm_up: list[list[str]]) -> None:
        words = [
            sys.executable,
            "-m",
            "tests.campaigns.forks",
            str(folder),
            json.dumps(warm_up),
        ]
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # threads of OpenMP do not survive a fork
            env={
                **os.environ,
                "OMP_NUM_THREADS": "1",
            },
        )
        assert self._line() == "ready", "the process that forks did not get ready"

    def start(self, program: str, words: list[str], folder: Path) -> int:
        """Begin a command; the number of its process."""
        assert self._process.stdin is not None
        task = {"program": program, "words": words, "folder": str(folder)}
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()
        return int(self._line())

    def sleep(self, seconds: float) -> None:
        """Sleep, but no longer than the command runs."""
        assert self._process.stdout is not None
        select.select([self._process.stdout], [], [], max(0.0, seconds))

    def wait(self) -> int:
        """The exit code of the command, as `subprocess` tells it."""
        return os.waitstatus_to_exitcode(int(self._line()))

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


def output_of(folder: Path, stream: str = "err") -> str:
    """What a command in a folder has printed."""
    return folder.with_suffix(f".{stream}").read_text()


def run_mmcnb(words: list[str]) -> int:
    """The console command, as its script runs it."""
    from mmcnb.cli import main

    sys.argv = ["mmcnb", *words]
    return main()


def run_benchmarks(words: list[str]) -> int:
    """The command of the studies, with one more: a tiny one."""
    import benchmarks.__main__ as command
    from tests.campaigns import tiny_study

    command.STUDIES = ("tiny",)
    sys.modules["benchmarks.studies.tiny"] = tiny_study
    sys.argv = ["benchmarks", *words]
    return command.main()


def run_save(words: list[str]) -> int:
    """Load a model and save it again elsewhere, as a program does."""
    import mmcnb

    mmcnb.load(words[0]).save(words[1])
    return 0


PROGRAMS = {"mmcnb": run_mmcnb, "benchmarks": run_benchmarks, "save": run_save}


def _serve(lines: TextIO) -> None:
    """Fork for each line; only a child returns."""
    for line in lines:
        task = json.loads(line)
        child = os.fork()
        if child == 0:
            _become(task)
        print(os.waitpid(child, 0)[1], flush=True)


def _become(task: dict[str, Any]) -> None:
    """Be the process of a command, and end as it does."""
    said = os.dup(1)
    folder = Path(task["folder"])
    for number, stream in ((1, "out"), (2, "err")):
        os.dup2(
            os.open(
                folder.with_suffix(f".{stream}"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            ),
            number,
        )
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(folder)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.write(said, f"{os.getpid()}\n".encode())
    os.close(said)
    if task["program"] == "console":
        os.execv(sys.executable, [sys.executable, "-m", "mmcnb", *task["words"]])
    sys.exit(PROGRAMS[task["program"]](task["words"]))


def main(folder: str, warm_up: list[list[str]]) -> None:
    """Load all that commands load, by running each in a folder of its own, then serve."""
    out = os.dup(1)
    here = Path.cwd()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for number, (program, *words) in enumerate(warm_up):
        place = Path(folder, str(number))
        place.mkdir()
        os.chdir(place)
        code = PROGRAMS[program](words)
        assert code == 0, f"{program} {' '.join(words)}: {code}"
    os.chdir(here)
    sys.stdout.flush()
    gc.freeze()  # so that children do not write to what they share
    os.dup2(out, 1)
    print("ready", flush=True)
    _serve(sys.stdin)


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
