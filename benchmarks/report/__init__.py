"""``python -m benchmarks report``: write one page about all studies, and the figures of the documentation."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

import benchmarks
from benchmarks.journal import whole_file
from benchmarks.report.figures import Panel, curves, dots, png, svg
from benchmarks.report.summary import (
    FEWEST_SIZES,
    Study,
    View,
    primary,
    read_all,
    summarise,
)
from benchmarks.report.tables import (
    Table,
    comparison,
    everything,
    failures,
    goals,
    growth,
)
from mmcnb import InputError

__all__ = ["write_report"]

README_FIGURES = ("adult", "mnist")
MORE_FIGURES = ("usps",)  # drawn if the folder has the study


class Section(NamedTuple):
    """A section of the page about a study."""

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
        Folder for adult.png, mnist.png and, if the study usps has run, usps.png. If
        None, these files are not written.

    Returns
    -------
    Path
        Path of the page, a file that loads nothing from elsewhere.

    Raises
    ------
    InputError
        If there is no frame, a frame is damaged, the study of a figure has not run, or
        Jinja2 is not installed.
    """
    studies = []
    panels = {}
    for study in read_all(folder):
        sections = list(_sections(study, folder))
        studies.append((study, sections, _docstring(study.name)))
        panels[study.name] = [panel for section in sections for panel in section.panels]
    names = README_FIGURES if figures else ()
    for name in names:
        if not panels.get(name):
            raise InputError(
                f"{name}.png needs the study {name}; "
                f"run python -m benchmarks {name} first."
            )
    page = folder / "report.html"
    with whole_file(page) as aside:
        aside.write_text(_page(studies=studies, svg=svg), encoding="utf-8")
    if figures:
        for name in [*names, *filter(panels.get, MORE_FIGURES)]:
            with whole_file(figures / f"{name}.png") as aside:
                png(panels[name], aside)
    return page


def _sections(study: Study, folder: Path) -> Iterator[Section]:
    """Yield the sections of a study, then its goals and its failed runs."""
    if study.runs:
        for name, rows in summarise(study).groupby("part"):
            sweep = study.view.sweeps.get(name, "")
            panels, tables = _shown(rows, study.view, sweep)
            title = name[:1].upper() + name[1:]
            yield Section(title, panels, tables)
    path = folder / f"{study.name}-goals.csv"
    if path.exists():
        yield Section("Goals", [], [goals(path)])
    if len(study.failed):
        yield Section("Failed runs", [], [failures(study.failed)])


def _shown(
    rows: pd.DataFrame, view: View, sweep: str
) -> tuple[list[Panel], list[Table]]:
    """Return the figures and tables of a section."""
    metric = primary(rows["metric"], view)
    if set(rows["method"]) == {""}:  # facts of the data
        return [], [everything(rows, sweep, folded=False)]
    whole = everything(rows, sweep, folded=True)
    if rows["x"].notna().any():
        one = rows["method"].nunique() == 1
        lines, each = ("name", "method") if one else ("method", "dataset")
        return list(curves(rows, metric, "x", sweep, lines, each)), [whole]
    groups = [("", rows)] if view.by_rows else rows.groupby("dataset")
    growing = {
        name: part
        for name, part in groups
        if part.groupby("method")["n"].nunique().max() >= FEWEST_SIZES
    }
    panels = [] if view.by_rows and growing else dots(rows, metric)
    tables = [
        comparison(rows, each)
        for each in dict.fromkeys([metric, "seconds"] if growing else [metric])
    ]
    for name, part in growing.items():
        panels += curves(
            part,
            metric,
            "n",
            "rows",
            "method",
            "" if view.by_rows else "dataset",
            view.growth_from,
        )
        tables.append(growth(part, name, view.growth_from))
    return panels, [*tables, whole]


def _docstring(name: str) -> str:
    """Read the docstring of a study without importing it, because the study may have been removed."""
    folder = Path(benchmarks.__file__).parent / "studies"
    path = folder / f"{name.replace('-', '_')}.py"
    if not path.exists():
        return ""
    return ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""


def _page(**given: Any) -> str:
    """Return the page as text; the template escapes all texts except figures."""
    try:
        from jinja2 import StrictUndefined, Template
    except ImportError:
        raise InputError(
            "the page needs jinja2: pip install 'mmcnb[benchmarks]'."
        ) from None

    text = Path(__file__).with_name("page.html.jinja").read_text(encoding="utf-8")
    page = Template(
        text,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return page.render(given)
