"""``python -m benchmarks STUDY``: run a study, print its tables and goals, and record its cells."""

from __future__ import annotations

import argparse
import sys
import traceback
from importlib import import_module
from pathlib import Path

import benchmarks
from benchmarks._common import Options, publish, warn_if_busy
from benchmarks._journal import Journal
from mmcnb.errors import InputError

# In the order in which `all` runs them.
ALL = ("small", "mnist", "adult", "usps", "eta", "evolutionary", "rls", "mkc", "scm", "engine", "peers")
STUDIES = (*ALL, "collapse", "basis", "growth", "startup", "widths", "selection")
SMOKE_ROWS = 200


def main(arguments: list[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : list of str or None, default=None
        What stands after the command; None takes it from the process.

    Returns
    -------
    int
        0; 1 where a cell failed, 2 where a study could not be run. A goal that is missed is no error.
    """
    given = _parser().parse_args(arguments)
    if given.study == "list":
        _list()
        return 0
    if given.study == "report":
        return _report(given.out, given.figures)
    if given.study not in (*STUDIES, "all"):
        print(
            f"error: there is no study called {given.study!r}; choose one of {', '.join(STUDIES)}, "
            "or all, report, list.",
            file=sys.stderr,
        )
        return 2
    names = ALL if given.study == "all" else (given.study,)
    warn_if_busy()
    return max([_run(name, options_of(given)) for name in names])


def options_of(given: argparse.Namespace) -> Options:
    """What the words of the command line mean; ``--smoke`` is one seed and few rows where nothing is said."""
    return Options(
        out=given.out,
        quick=given.quick or given.smoke,
        seeds=given.seeds or (1 if given.smoke else None),
        rows=given.rows or (SMOKE_ROWS if given.smoke else None),
        parts=tuple(given.part),
        smoke=given.smoke,
        jobs=given.jobs,
        retry=given.retry,
    )


def _run(name: str, options: Options) -> int:
    """Run one study; what stops it is told in one sentence, and the other studies go on."""
    try:
        run = import_module(f"benchmarks.{name}").run
        with Journal(name, options) as journal:
            publish(name, run(options, journal), options)
            if journal.failed:
                print(f"{journal.failed} cells failed: {journal.path} says why, --retry computes them again.")
                return 1
    except (InputError, OSError) as error:
        print(f"error: {name}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"\nerror: {name}: interrupted; the same command goes on from here.", file=sys.stderr)
        raise SystemExit(130) from None
    except Exception:  # a fault of ours, which need not take the other studies with it
        traceback.print_exc()
        return 2
    return 0


def _report(folder: Path, figures: Path | None) -> int:
    """Write the page of all frames in a folder, and the figures of the documents where they are asked for."""
    from benchmarks.report import write_report

    try:
        print(write_report(folder, figures))
    except (InputError, OSError) as error:
        print(f"error: report: {error}", file=sys.stderr)
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
    add("study", metavar="STUDY", help="a study, 'all', 'report', or 'list'")
    add("--quick", action="store_true", help="fewer rows where a study is long")
    add("--smoke", action="store_true", help="tiny sizes of the same code, to see that it runs")
    add(
        "--jobs", type=_positive, default=1, metavar="N", help="compute in so many processes; times get rough"
    )
    add("--retry", action="store_true", help="compute again what failed")
    add(
        "--out",
        type=Path,
        default=Path("benchmark-results"),
        metavar="DIR",
        help="folder for journals, frames and tables",
    )
    add("--figures", type=Path, metavar="DIR", help="report: also write adult.png and mnist.png there")
    add("--seeds", type=_positive, metavar="N", help="repeats with other seeds (default: as the study says)")
    add("--rows", type=_positive, metavar="N", help="at most so many rows of each data set")
    add(
        "--part",
        action="append",
        default=[],
        help="evolutionary, rls, mkc, scm, engine: only this part; may be given several times",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
