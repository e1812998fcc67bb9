"""``python -m benchmarks report``: one page of all studies in a folder, and the figures of README."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

import benchmarks
from benchmarks.journal import whole_file
from benchmarks.report.figures import (
    Panel,
    curves_over_parameter,
    curves_over_rows,
    dots_by_data_set,
    png,
    svg,
)
from benchmarks.report.summary import Study, View, primary, read_all, slopes, summarise
from benchmarks.report.tables import Table, comparison, everything, failures, goals, growth
from mmcnb import InputError

__all__ = ["write_report"]

README_FIGURES = ("adult", "mnist")
SIZES = 3  # so many numbers of rows of one data set make a figure against rows


class Section(NamedTuple):
    """A section of a study."""

    title: str
    panels: list[Panel]
    tables: list[Table]


def write_report(folder: Path, figures: Path | None = None) -> Path:
    """Write ``report.html`` beside the frames.

    Parameters
    ----------
    folder : Path
        Folder with the frames of the studies.
    figures : Path or None, default=None
        Where to write adult.png and mnist.png, the figures of README; None writes none.

    Returns
    -------
    Path
        The page: one file that asks for nothing from outside.

    Raises
    ------
    InputError
        If there is no frame, or one is damaged; if a figure lacks its study; or if Jinja2 is not installed.
    """
    studies = {study.name: study for study in read_all(folder)}
    paths = {name: figures / f"{name}.png" for name in README_FIGURES} if figures else {}
    for name in paths:
        if name not in studies or not studies[name].runs:
            raise InputError(f"{name}.png needs the study {name}; run python -m benchmarks {name} first.")
    sections = {name: list(_sections(study, folder)) for name, study in studies.items()}
    text = _page(
        (study, sections[name], _docstring(name), _header(folder / f"{name}.jsonl"))
        for name, study in studies.items()
    )
    page = folder / "report.html"
    with whole_file(page) as aside:
        aside.write_text(text, encoding="utf-8")
    for name, path in paths.items():
        with whole_file(path) as aside:
            png([panel.figure for section in sections[name] for panel in section.panels], aside)
    return page


def _sections(study: Study, folder: Path) -> Iterator[Section]:
    """The sections of a study, then its goals and the runs that failed."""
    view = study.view
    for name, rows in summarise(study).groupby("part"):
        title, sweep = name[:1].upper() + name[1:], view.sweeps.get(name, "")
        metric = primary(rows["metric"], view)
        if set(rows["method"]) == {""}:  # facts of the data
            yield Section(title, [], [everything(rows, sweep, folded=False)])
        elif rows["x"].notna().any():
            panels = curves_over_parameter(rows, sweep, metric)
            yield Section(title, panels, [everything(rows, sweep, folded=True)])
        else:
            growing = _growing(rows, view)
            panels = [] if view.by_rows and growing else dots_by_data_set(rows, view, metric)
            shown = dict.fromkeys([metric, "seconds"] if growing else [metric])
            found = [table for each in shown for table in comparison(rows, each)]
            for data_set, part in growing:
                fits = slopes(part[part["metric"] == "seconds"])
                panels += curves_over_rows(part, metric, fits, data_set)
                found += growth(fits, data_set)
            yield Section(title, panels, [*found, everything(rows, sweep, folded=True)])
    if (path := folder / f"{study.name}-goals.csv").exists():
        yield Section("Goals", [], [goals(path)])
    if len(study.failed):
        yield Section("Failed runs", [], [failures(study.failed)])


def _growing(rows: pd.DataFrame, view: View) -> list[tuple[str, pd.DataFrame]]:
    """The data sets of several sizes, with their rows; a single one without a name in views by rows."""
    groups = [("", rows)] if view.by_rows else rows.groupby("dataset")
    return [(name, part) for name, part in groups if part.groupby("method")["n"].nunique().max() >= SIZES]


def _docstring(name: str) -> str:
    """What the module of a study says; it is read and not imported, since a study may be gone."""
    folder = Path(benchmarks.__file__).parent
    for path in (folder / "studies" / f"{name}.py", folder / f"{name}.py"):
        if path.exists():
            return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return ""


def _header(path: Path) -> dict[str, Any]:
    """First line of the journal: scale and rows; empty where there is none."""
    try:
        with path.open(encoding="utf-8") as lines:
            header = json.loads(lines.readline())
    except (OSError, ValueError):
        return {}
    return header if isinstance(header, dict) else {}


def _page(studies: Iterable[tuple[Study, list[Section], str, dict[str, Any]]]) -> str:
    """The page as text; the template escapes every text but the figures."""
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ImportError:
        raise InputError("the page needs jinja2: pip install 'mmcnb[benchmarks]'.") from None

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.jinja").render(studies=list(studies), svg=svg)
