"""``python -m benchmarks STUDY``: run a study, print its tables and goals, and write them as CSV."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path

import benchmarks
from benchmarks._common import Options, publish, warn_if_busy
from mmcnb._errors import InputError

STUDIES = (
    "adult",
    "usps",
    "mnist",
    "collapse",
    "basis",
    "growth",
    "startup",
    "widths",
    "selection",
    "engine",
    "evolutionary",
    "rls",
    "mkc",
    "scm",
    "peers",
)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : list of str or None, default=None
        What stands after the command; None takes it from the process.

    Returns
    -------
    int
        0, or 2 where a study could not be run; a goal that is missed is no error.
    """
    given = _parser().parse_args(arguments)
    if given.study == "list":
        _list()
        return 0
    if given.study not in (*STUDIES, "all"):
        print(
            f"error: there is no study called {given.study!r}; choose one of {', '.join(STUDIES)}, or all.",
            file=sys.stderr,
        )
        return 2
    options = Options(given.out, given.quick, given.seeds, given.rows, given.sizes, tuple(given.part))
    names = STUDIES if given.study == "all" else (given.study,)
    warn_if_busy()
    return max([_run(name, options) for name in names])


def _run(name: str, options: Options) -> int:
    """Run one study; what stops it is told in one sentence, and the other studies go on."""
    try:
        publish(name, import_module(f"benchmarks.{name}").run(options), options)
    except (InputError, OSError) as error:
        print(f"error: {name}: {error}", file=sys.stderr)
        return 2
    return 0


def _list() -> None:
    for name in STUDIES:
        summary = (import_module(f"benchmarks.{name}").__doc__ or "").partition("\n")[0]
        print(f"{name:<14}{summary}")


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=benchmarks.__doc__)
    add = parser.add_argument
    add("study", metavar="STUDY", help="a study, 'all', or 'list'")
    add("--quick", action="store_true", help="fewer rows where a study is long")
    add("--out", type=Path, default=Path("benchmark-results"), metavar="DIR", help="folder for the CSV files")
    add("--seeds", type=_positive, metavar="N", help="repeats with other seeds (default: as the study says)")
    add("--rows", type=_positive, metavar="N", help="at most so many rows of each data set")
    add("--sizes", action="store_true", help="adult: also a1a to a9a, for time against the number of rows")
    add(
        "--part",
        action="append",
        default=[],
        help="engine, rls, mkc, scm: only this part; may be given several times",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
