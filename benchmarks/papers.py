"""``docs/papers.md`` and its tables: each published figure, and our run or a reason."""

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
    directives = []
    for paper, rows in compared(kept).groupby("paper", sort=False):
        name = str(paper).lower().replace(" ", "-")
        write_table(table_of(rows), docs / "papers" / f"{name}.csv")
        directives.append(TABLE.format(paper=paper, name=name))
    template = Path(__file__).with_name("papers.md").read_text(encoding="utf-8")
    text = template.replace("<tables>", "\n\n".join(directives))
    page = docs / "papers.md"
    with whole_file(page) as aside:
        aside.write_text(text, encoding="utf-8")
    return page


def table_of(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the figures of one paper for people: published and ours, with its run."""
    how = []
    for row in rows.itertuples():
        run = ""
        if pd.notna(row.command):
            run = f"{row.setting}: `{row.command}`"
        how.append(". ".join(filter(None, [run, row.reason])))
    names = {"table": "table", "dataset": "data set", "method": "method"}
    table = rows[[*names]].rename(columns=names)
    return table.assign(
        measure=rows["metric"].map(label),
        published=_cells(rows, "value", "sd"),
        ours=_cells(rows, "ours", "our sd"),
        how=how,
    )


def _cells(rows: pd.DataFrame, value: str, sd: str) -> list[str]:
    # The deviation is that of the runs, not of their largest value.
    deviations = rows[sd].where(rows["metric"] != LARGEST)
    cells = []
    for metric, mean, deviation in zip(
        rows["metric"], rows[value], deviations, strict=True
    ):
        text = MISSING if pd.isna(mean) else cell(metric, mean, deviation, nan)
        cells.append(text)
    return cells
