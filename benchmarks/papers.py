"""``docs/papers.md`` and its tables: each published figure of a table, and our run or the reason for none."""

from math import nan
from pathlib import Path

import pandas as pd

from benchmarks.journal import whole_file
from benchmarks.kept import FOLDER, LARGEST, compared
from benchmarks.report.tables import MISSING, cell, label
from benchmarks.tables import write_table

DOCS = Path(__file__).parents[1] / "docs"
TABLE = """\
```{{csv-table}} {paper}
:header-rows: 1
:file: papers/{name}.csv
```"""


def write_pages(docs: Path = DOCS, kept: Path = FOLDER) -> Path:
    """Write ``papers.md`` and, for each paper, the table that it shows.

    Parameters
    ----------
    docs : Path, default=DOCS
        Folder of the pages.
    kept : Path, default=FOLDER
        Folder of the kept figures.

    Returns
    -------
    Path
        The page.
    """
    shown = []
    for paper, rows in compared(kept).groupby("paper", sort=False):
        name = str(paper).lower().replace(" ", "-")
        write_table(table_of(rows), docs / "papers" / f"{name}.csv")
        shown.append(TABLE.format(paper=paper, name=name))
    text = Path(__file__).with_name("papers.md").read_text(encoding="utf-8")
    page = docs / "papers.md"
    with whole_file(page) as aside:
        aside.write_text(text.replace("<tables>", "\n\n".join(shown)), encoding="utf-8")
    return page


def table_of(rows: pd.DataFrame) -> pd.DataFrame:
    """The figures of one paper for people: published, ours, and how ours came about or why it is missing."""
    printed = _cells(rows, "value", "sd")
    ours = _cells(rows, "ours", "our sd")
    runs = [
        f"{row.setting}: `{row.command}`" if row.command == row.command else ""
        for row in rows.itertuples()
    ]
    how = [
        ". ".join(filter(None, pair)) for pair in zip(runs, rows["reason"], strict=True)
    ]
    names = {"table": "table", "dataset": "data set", "method": "method"}
    measures = rows["metric"].map(label)
    return (
        rows[[*names]]
        .rename(columns=names)
        .assign(measure=measures, published=printed, ours=ours, how=how)
    )


def _cells(rows: pd.DataFrame, value: str, sd: str) -> list[str]:
    spread = rows[sd].where(
        rows["metric"] != LARGEST
    )  # no deviation of a largest value, but of its runs
    given = zip(rows["metric"], rows[value], spread, strict=True)
    return [
        MISSING if pd.isna(mean) else cell(metric, mean, spread, nan)
        for metric, mean, spread in given
    ]
