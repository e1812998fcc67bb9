"""The page: sections put into the template, which escapes every text."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from benchmarks.report import _figures as figures
from benchmarks.report import _reading as reading
from benchmarks.report import _tables as tables
from benchmarks.report._blocks import Block, blocks
from benchmarks.report._frames import Study
from benchmarks.report._studies import FREE, KMEANS, PAPER, About, about, primary, told
from benchmarks.report._summary import RESOURCES, beside, beside_published, published_for, summarise
from mmcnb.errors import InputError

HERE = Path(__file__).parent


class Section(NamedTuple):
    """A study on the page."""

    study: Study
    about: About
    summary: pd.DataFrame
    known: pd.DataFrame
    blocks: list[Block]


def section(study: Study) -> Section:
    """All that the page says of a study."""
    known_of = about(study.name)
    summary, known = summarise(study, known_of), published_for(known_of)
    return Section(study, known_of, summary, known, blocks(study, known_of, summary, known))


def page(sections: list[Section]) -> str:
    """The page as text.

    Parameters
    ----------
    sections : list of Section
        The studies, in order.

    Returns
    -------
    str
        HTML that asks for nothing from outside.

    Raises
    ------
    InputError
        If Jinja2, which fills the template, is not installed.
    """
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ImportError:
        raise InputError("the page needs jinja2: pip install 'mmcnb[benchmarks]'.") from None

    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.jinja").render(
        style=(HERE / "page.css").read_text(encoding="utf-8"),
        script=(HERE / "page.js").read_text(encoding="utf-8"),
        overview=overview(sections),
        sections=[_facts(each) for each in sections],
    )


def overview(sections: list[Section]) -> tables.Table:
    """One row a study: cells, failures, goals, and where ours are better and worse."""
    columns = [
        "study",
        "cells",
        "failed",
        "goals reached",
        "against published",
        "against k-means",
    ]
    return tables.Table(
        "Overview. Against published: by the paper's protocol; against k-means: label-free.",
        columns,
        [_overview_row(each) for each in sections],
    )


def _overview_row(each: Section) -> list[tables.Cell]:
    study, known_of = each.study, each.about
    goals = study.goals["verdict"] == "reached"
    free = each.summary[each.summary["protocol"] == FREE]
    printed = beside_published(each.summary, each.known)
    printed = printed[printed["method"].isin(known_of.ours or set(printed["method"]) - {KMEANS})]
    return [
        tables.Cell(known_of.title),
        tables.Cell(f"{len(study.cells):,}", len(study.cells)),
        tables.Cell(f"{len(study.failed):,}", len(study.failed)),
        tables.Cell(
            f"{goals.sum()} of {len(goals)}" if len(goals) else reading.NOTHING,
            goals.mean() if len(goals) else None,
        ),
        _counts(_primary_rows(printed, known_of), "published"),
        _counts(_primary_rows(beside(free, KMEANS, known_of), known_of), "other"),
    ]


def _primary_rows(rows: pd.DataFrame, known_of: About) -> pd.DataFrame:
    """Rows of each part's primary metric."""
    kept = [
        part[part["metric"] == primary(sorted(set(part["metric"]) - set(RESOURCES)), known_of)]
        for _, part in rows.groupby("part")
    ]
    return pd.concat(kept) if kept else rows


def _counts(rows: pd.DataFrame, other: str) -> tables.Cell:
    better, worse = reading.counts(rows, other)
    return (
        tables.Cell(f"{better} better, {worse} worse", better / (better + worse))
        if better + worse
        else tables.MISSING
    )


def _facts(each: Section) -> dict[str, Any]:
    """A section as the template takes it."""
    study, known_of = each.study, each.about
    question, how = told(study.name)
    drawn = [
        {
            "title": block.title,
            "reading": block.reading,
            "tables": block.tables,
            "panels": [
                {
                    "svg": figures.svg(panel.figure, panel.caption, f"{study.name}-{number}-{place}"),
                    "caption": panel.caption,
                }
                for place, panel in enumerate(block.panels)
            ],
        }
        for number, block in enumerate(each.blocks)
    ]
    return {
        "name": study.name,
        "title": known_of.title,
        "question": question,
        "how": how,
        "command": f"python -m benchmarks {study.name}" + _scale(study),
        "caveats": reading.caveats(study),
        "outcome": [text for text in (reading.goals(study), reading.failures(study)) if text],
        "blocks": drawn,
        "tables": [*tables.failed_table(study), *tables.goals_table(study)],
        "versions": ", ".join(f"{name} {value}" for name, value in study.versions.items()),
        "digests": ", ".join(f"{name} {value}" for name, value in study.digests.items() if value),
        "protocols": [name for name in (PAPER, FREE) if name in set(each.summary["protocol"])],
    }


def _scale(study: Study) -> str:
    scale = study.header.get("scale", "full")
    return "" if scale == "full" else f" --{scale}"
