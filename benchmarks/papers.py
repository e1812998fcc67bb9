"""Write ``docs/papers.md`` and its tables, which list each published figure with our run or a reason."""

from math import nan
from pathlib import Path

import pandas as pd

from benchmarks.journal import whole_file
from benchmarks.kept import (
    FOLDER,
    FULL,
    LARGEST,
    NONE,
    QUICK,
    compared,
    counts_by,
    results,
)
from benchmarks.protocol import PAPER
from benchmarks.report.tables import MISSING, cell, label
from benchmarks.studies._skmmc import OWN_BASIS
from benchmarks.tables import write_table

DOCS = Path(__file__).parents[1] / "docs"
BESIDE = {
    OWN_BASIS: "SKMMC"
}  # methods that are not in the papers, and the paper's method below which each is shown
TABLE = """\
```{{csv-table}} {paper}
:header-rows: 1
:file: papers/{name}.csv
```"""


def write_pages(docs: Path = DOCS, kept: Path = FOLDER) -> Path:
    """Write ``papers.md`` and the table of each paper.

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
    figures = compared(kept)
    counts = counts_by(figures, ["paper"])
    for paper, rows in with_variants(figures, kept).groupby("paper", sort=False):
        name = str(paper).lower().replace(" ", "-")
        write_table(table_of(rows), docs / "papers" / f"{name}.csv")
        directives.append(TABLE.format(paper=paper, name=name))
    template = Path(__file__).with_name("papers.md").read_text(encoding="utf-8")
    text = template.replace("<counts>", counts_table(counts))
    text = text.replace("<tables>", "\n\n".join(directives))
    page = docs / "papers.md"
    with whole_file(page) as aside:
        aside.write_text(text, encoding="utf-8")
    return page


def counts_table(counts: pd.DataFrame) -> str:
    """Return the number of figures of each paper by kind of run, and the sums, as a Markdown table."""
    total = counts.sum(numeric_only=True).to_dict() | {"paper": "all"}
    titles = {
        "paper": "paper",
        "figures": "published figures",
        FULL: "full run",
        QUICK: "quick run",
        NONE: "no run",
    }
    lines = [list(titles.values()), ["---"] * len(titles)]
    for row in [*counts.to_dict("records"), total]:
        lines.append([str(row[name]) for name in titles])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def with_variants(figures: pd.DataFrame, kept: Path) -> pd.DataFrame:
    """Insert the kept runs of `BESIDE`, each below the method of which it is a variant."""
    runs = results(kept)
    in_tables = (runs["protocol"] == PAPER) & (runs["at"] == "")
    variants = runs[in_tables & runs["method"].isin([*BESIDE])]
    variants = variants.drop(columns="published")
    variants = variants.rename(columns={"value": "ours", "sd": "our sd"})
    variants = variants.assign(base=variants["method"].map(BESIDE), reason="")
    is_full = variants["setting"].str.startswith(FULL)
    variants["scale"] = is_full.map({True: FULL, False: QUICK})
    keys = ["paper", "table", "dataset", "metric", "base"]
    order = figures.assign(base=figures["method"], place=range(len(figures)))
    variants = variants.merge(order[[*keys, "place"]], on=keys)
    together = pd.concat([order.astype({"value": float}), variants])
    return together.sort_values("place", kind="stable", ignore_index=True)


def table_of(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the published figures of one paper and ours, with the run, as readable text.

    A quick run is shown only in the last column, because it cannot be compared.
    """
    how = []
    ours = _cells(rows, "ours", "our sd")
    for row, our_cell in zip(rows.itertuples(), ours, strict=True):
        run = ""
        if row.scale == QUICK:
            run = f"not comparable: {our_cell} by a run that is {row.setting}: `{row.command}`"
        elif row.scale == FULL:
            run = f"{row.setting}: `{row.command}`"
        how.append(". ".join(filter(None, [run, row.reason])))
    is_full = (rows["scale"] == FULL).tolist()
    names = {"table": "table", "dataset": "data set", "method": "method"}
    table = rows[[*names]].rename(columns=names)
    return table.assign(
        measure=rows["metric"].map(label),
        published=_cells(rows, "value", "sd"),
        ours=[
            text if full else MISSING for text, full in zip(ours, is_full, strict=True)
        ],
        how=how,
    )


def _cells(rows: pd.DataFrame, value: str, sd: str) -> list[str]:
    # This is the deviation of the runs, not of their largest value.
    deviations = rows[sd].where(rows["metric"] != LARGEST)
    cells = []
    for metric, mean, deviation in zip(
        rows["metric"], rows[value], deviations, strict=True
    ):
        text = MISSING if pd.isna(mean) else cell(metric, mean, deviation, nan)
        cells.append(text)
    return cells
