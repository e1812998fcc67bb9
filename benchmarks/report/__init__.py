"""``python -m benchmarks report``: one page of all studies in a folder, and the figures of the documents."""

from __future__ import annotations

from pathlib import Path

from benchmarks._common import whole_file
from benchmarks.report._documents import check_figures, write_figures
from benchmarks.report._frames import read_all
from benchmarks.report._page import page, section
from benchmarks.report._studies import ABOUT

__all__ = ["write_report"]


def write_report(out: Path, figures: Path | None = None) -> Path:
    """Write ``report.html`` beside the frames.

    Parameters
    ----------
    out : Path
        Folder with the studies' frames.
    figures : Path or None, default=None
        Where to write adult.png and mnist.png, the figures of the documents; None writes none.

    Returns
    -------
    Path
        The page: one file that asks for nothing from outside.

    Raises
    ------
    InputError
        If there is no frame, or one is damaged; or a figure lacks its study.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from benchmarks._cells import Cell
    >>> from benchmarks._common import Options
    >>> from benchmarks._journal import Journal
    >>> from benchmarks.report import write_report
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Journal("example", Options(Path(folder))) as journal:
    ...         rows = journal.rows([Cell("heart", "guess", 0, lambda: {"error": 0.5})])
    ...     "50.00 %" in write_report(Path(folder)).read_text(encoding="utf-8")
    True
    """
    order = list(ABOUT)
    studies = sorted(
        read_all(out), key=lambda study: order.index(study.name) if study.name in order else len(order)
    )
    if figures is not None:
        check_figures(studies)
    sections = [section(study) for study in studies]
    path = out / "report.html"
    with whole_file(path) as aside:
        aside.write_text(page(sections), encoding="utf-8")
    if figures is not None:
        write_figures({each.study.name: each for each in sections}, figures)
    return path
