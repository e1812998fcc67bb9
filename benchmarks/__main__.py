"""``python -m benchmarks STUDY``: run a study, print its tables and goals, and record its runs."""

import argparse
import os
import signal
import sys
import traceback
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

import pandas as pd
import psutil

import benchmarks
from benchmarks.journal import Journal, code_digest, say
from benchmarks.run import Options, Section
from benchmarks.tables import Goal, Result, publish
from mmcnb import InputError

# In the order in which ``all`` runs the studies.
ALL = (
    "small",
    "mnist",
    "adult",
    "usps",
    "eta",
    "evolutionary",
    "rls",
    "mkc",
    "scm",
    "engine",
    "routines",
    "peers",
)
STUDIES = (
    *ALL,
    "collapse",
    "basis",
    "growth",
    "limits",
    "scale",
    "speed",
    "startup",
    "tables",
    "table-memory",
    "table-speed",
    "widths",
    "selection",
    "choice",
    "columns",
    "number",
    "no-structure",
    "explain",
    "profile",
    "update",
    "like",
)
SMOKE_ROWS = 200
COMMANDS = "'report', 'keep' (in benchmarks/results), 'published' (comparison), 'papers' (docs/papers.md), 'speed-page' (docs/speed.csv)"
SIGNALS = (signal.SIGINT, signal.SIGTERM)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : list of str or None, default=None
        Arguments after the command; None uses the arguments of the process.

    Returns
    -------
    int
        0 if all runs succeeded, 1 if a run failed, 2 if a study could not be run, and
        130 if interrupted. A missed goal is not an error.
    """
    if arguments is None:
        for number in SIGNALS:
            signal.signal(number, _interrupt_once)
    try:
        return _main(arguments)
    except KeyboardInterrupt:
        print("\nerror: interrupted; the same command resumes it.", file=sys.stderr)
        return 130
    finally:
        if arguments is None:  # the process is about to end
            _ignore_signals()


def _interrupt_once(number: int, frame: FrameType | None) -> None:
    """Handle SIGTERM like the first Ctrl-C, and ignore it while the study cleans up."""
    _ignore_signals()
    raise KeyboardInterrupt


def _ignore_signals() -> None:
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _main(arguments: list[str] | None) -> int:
    words = vars(_parser().parse_args(arguments))
    name = words.pop("study")
    figures = words.pop("figures")
    if words["smoke"]:
        words |= {
            "quick": True,
            "seeds": words["seeds"] or 1,
            "rows": words["rows"] or SMOKE_ROWS,
        }
    options = Options(**words)
    if name == "list":
        for study in STUDIES:
            summary = (import_module(module_of(study)).__doc__ or "").partition("\n")[0]
            print(f"{study:<14}{summary}")
        return 0
    if name == "report":
        return _guarded(name, lambda: _report(options.out, figures))
    if name in KEPT:
        return _guarded(name, partial(KEPT[name], options.out))
    if name not in (*STUDIES, "all"):
        known = f"{', '.join(STUDIES)}, or all, report, keep, published, papers, speed-page, list"
        print(
            f"error: there is no study called {name!r}; choose one of {known}.",
            file=sys.stderr,
        )
        return 2
    warn_if_busy()
    return max(
        [
            _guarded(one, partial(_run, one, options))
            for one in (ALL if name == "all" else (name,))
        ]
    )


def _guarded(name: str, function: Callable[[], int]) -> int:
    """Call a function; if it raises an error, print one sentence so that the next study can run."""
    try:
        return function()
    except (InputError, OSError) as error:
        print(f"error: {name}: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print(
            f"\nerror: {name}: interrupted; the same command resumes it.",
            file=sys.stderr,
        )
        raise SystemExit(130) from None
    except Exception:
        # An unexpected error of one study must not end the other studies.
        traceback.print_exc()
    return 2


def _report(folder: Path, figures: Path | None) -> int:
    """Write the page of all frames in a folder and, if requested, the figures of the documentation."""
    from benchmarks.report import write_report

    print(write_report(folder, figures))
    return 0


def _keep(folder: Path) -> int:
    """Add the papers' figures of the frames in a folder to the kept figures."""
    from benchmarks.kept import keep

    for path in keep(folder):
        print(path)
    return 0


def _published(_: Path) -> int:
    """Compare the kept figures with the published ones."""
    from benchmarks.kept import summary

    print(summary())
    return 0


def _speed_page(folder: Path) -> int:
    """Write the times measured by a run in a folder to the page on scaling."""
    from benchmarks.speed_page import write_page

    print(write_page(folder))
    return 0


def _papers(_: Path) -> int:
    """Write the page with the figures of the papers."""
    from benchmarks.papers import write_pages

    print(write_pages())
    return 0


KEPT = {
    "keep": _keep,
    "published": _published,
    "papers": _papers,
    "speed-page": _speed_page,
}


def module_of(name: str) -> str:
    """Return the name of the module of a study.

    Examples
    --------
    >>> from benchmarks.__main__ import module_of
    >>> module_of("no-structure")
    'benchmarks.studies.no_structure'
    """
    return "benchmarks.studies." + name.replace("-", "_")


def _run(name: str, options: Options) -> int:
    module = module_of(name)
    study = import_module(module)
    with Journal(name, options, code_digest(module)) as journal:
        publish(name, run_study(study, options, journal), options)
        if journal.failed:
            print(
                f"{journal.failed} runs failed: {journal.path} has the reasons; --retry computes these runs again."
            )
    return int(journal.failed > 0)


def run_study(study: Any, options: Options, journal: Journal) -> Result:
    """Run the requested sections; a section without results does not stop the others.

    Parameters
    ----------
    study : module
        Has ``SECTIONS``, a mapping of names to `Section`, or the functions of a single
        section. Its ``usual_sections``, if any, lists the sections that run by default.
    options : Options
        From the command line.
    journal : Journal
        Record of the runs.

    Returns
    -------
    Result
        Tables and goals of all sections.

    Raises
    ------
    InputError
        If a section is unknown, or no section has results.
    """
    tables: dict[str, pd.DataFrame] = {}
    goals: list[Goal] = []
    shown: list[str] = []
    fault: InputError | None = None
    for name, section in _sections(study, options).items():
        try:
            found = section.tables(_results(name, section, options, journal))
        except InputError as error:
            if name:
                say(f"{name} is left out: {error}")
            fault = error
            continue
        tables |= found.tables
        goals += found.goals
        shown += found.tables if found.shown is None else found.shown
    if fault and not tables:
        raise fault
    return Result(tables, goals, tuple(shown))


def _sections(study: Any, options: Options) -> dict[str, Section]:
    """Return the requested sections."""
    if not hasattr(study, "SECTIONS"):
        return {"": Section(study.grid, study.compute, study.tables)}
    for name in options.parts:
        if name not in study.SECTIONS:
            raise InputError(
                f"there is no part called {name!r}; choose from {', '.join(study.SECTIONS)}."
            )
    usual = (
        study.usual_sections(options)
        if hasattr(study, "usual_sections")
        else study.SECTIONS
    )
    return {name: study.SECTIONS[name] for name in options.parts or usual}


def _results(
    name: str, section: Section, options: Options, journal: Journal
) -> pd.DataFrame:
    """Return the results of a section: of its grid, and of the runs that follow from them."""

    def results(runs: pd.DataFrame) -> pd.DataFrame:
        return journal.results(
            runs.assign(part=runs["part"].replace("", name)), section.compute
        )

    frame = results(section.grid(options))
    for follow in section.follow:
        more = follow(frame, options)
        if len(more):
            frame = pd.concat([frame, results(more)], ignore_index=True)
    return frame


def warn_if_busy() -> None:
    """Warn if other work on the machine would distort the times."""
    load = psutil.getloadavg()[0]
    cores = os.cpu_count() or 1
    if load > cores / 2:
        say(
            f"the machine is busy (load {load:.1f} on {cores} cores): do not trust times and ratios"
        )


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=benchmarks.__doc__
    )
    add = parser.add_argument
    add(
        "study",
        metavar="STUDY",
        nargs="?",
        default="list",
        help="a study, 'all', 'list', or one of: " + COMMANDS,
    )
    add("--quick", action="store_true", help="fewer rows in long studies")
    add(
        "--smoke",
        action="store_true",
        help="tiny data sets, to check that the code runs",
    )
    add("--retry", action="store_true", help="compute failed runs again")
    number: dict[str, Any] = {"type": _positive, "metavar": "N"}
    add(
        "--jobs",
        **number,
        default=1,
        help="number of processes that compute runs; more than one makes times inaccurate",
    )
    add(
        "--seeds",
        **number,
        help="number of seeds of each run (default: depends on the study)",
    )
    add("--rows", **number, help="largest number of rows of each data set")
    out = Path("benchmark-results")
    add(
        "--out",
        type=Path,
        default=out,
        metavar="DIR",
        help="folder for journals, frames and tables",
    )
    add(
        "--figures",
        type=Path,
        metavar="DIR",
        help="report: folder to which adult.png and mnist.png are also written",
    )
    part = "run only this section of a study; may be given several times"
    add("--part", action="append", default=[], dest="parts", help=part)
    return parser


if __name__ == "__main__":
    sys.exit(main())
