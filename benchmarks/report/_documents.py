"""The figures of the documents as PNG: adult against rows, and the pairs of MNIST."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks._common import whole_file
from benchmarks.report import _figures as figures
from benchmarks.report._blocks import against_rows, comparison
from benchmarks.report._frames import Study
from benchmarks.report._page import Section
from mmcnb.errors import InputError

METRIC = "balanced_error"


def write_figures(sections: dict[str, Section], folder: Path) -> list[Path]:
    """Write adult.png and mnist.png.

    Parameters
    ----------
    sections : dict of str to Section
        The studies by name.
    folder : Path
        Where to write.

    Returns
    -------
    list of Path
        The two files.
    """
    return [_write(draw(sections[name]), folder / f"{name}.png") for name, draw in FIGURES.items()]


def check_figures(studies: list[Study]) -> None:
    """Say which study a figure lacks.

    Raises
    ------
    InputError
        If one is not there, or has no cells.
    """
    for name in FIGURES:
        if not any(study.name == name and len(study.cells) for study in studies):
            raise InputError(f"{name}.png needs the study {name}; run python -m benchmarks {name} first.")


def _adult(section: Section) -> list[Any]:
    panels, _ = against_rows(section.summary, section.about, METRIC)
    return [panel.figure for panel in panels]


def _mnist(section: Section) -> list[Any]:
    return [panel.figure for panel in comparison(section.summary, section.known, section.about, METRIC)]


FIGURES: dict[str, Callable[[Section], list[Any]]] = {"adult": _adult, "mnist": _mnist}


def _write(drawn: list[Any], path: Path) -> Path:
    with whole_file(path) as aside:
        figures.png(drawn, aside)
    return path
