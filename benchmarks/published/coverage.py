"""Count the figures of the papers' tables for which the grids of the studies have a run.

``python -m benchmarks.published.coverage`` prints the counts by table. A figure has a
run if the full grid has a run with the paper's protocol and the names of the data set
and the method; nothing is computed. Further columns count the figures by their kept
run: full, quick, or none.
"""

from functools import cache
from importlib import import_module
from pathlib import Path

import pandas as pd

from benchmarks.kept import FULL, NONE, QUICK, compared, counts_by
from benchmarks.protocol import PAPER
from benchmarks.published import EVO, MKC, RLS, SKMMC, THESIS, published
from benchmarks.run import OK, Options, Section, as_json
from benchmarks.studies import evolutionary

__all__ = ["coverage"]

SECTIONS = {  # studies, and their sections that measure a table
    (SKMMC, "Tab. II"): [("small", "tables")],
    (SKMMC, "Tab. III"): [("small", "tables")],
    (SKMMC, "Tab. V"): [("mnist", "")],
    (SKMMC, "Tab. VI"): [("mnist", "")],
    (EVO, "Tab. 1"): [("evolutionary", part) for part in ("tables", "pairs", "mnist")],
    (EVO, "Tab. 2"): [("evolutionary", "tables")],
    (RLS, "Tab. I"): [("rls", "tables")],
    (RLS, "Tab. II"): [("rls", "tables")],
    (MKC, "Table 2"): [("mkc", "table2"), ("mkc", "mnist")],
    (MKC, "Table 3"): [("mkc", part) for part in ("table2", "mnist", "table3")],
    (THESIS, "Tab. 5-3"): [("mkc", "table2")],
    (THESIS, "Tab. 5-4"): [("mkc", "table3")],
}


def coverage() -> pd.DataFrame:
    """Return the published figures of methods in tables, with a column "run".

    Returns
    -------
    DataFrame
        Rows of `published`; "run" says whether a study has a run for the figure.

    Examples
    --------
    >>> from benchmarks.published.coverage import coverage
    >>> frame = coverage()
    >>> len(frame), bool(frame["run"].all())
    (711, True)
    """
    frame = published()
    tables = pd.MultiIndex.from_frame(frame[["paper", "table"]]).isin(list(SECTIONS))
    frame = frame[tables & (frame["method"] != "")].reset_index(drop=True)
    found = [
        any(
            (row.dataset, row.method) in _runs_of(*section)
            for section in SECTIONS[row.paper, row.table]
        )
        for row in frame.itertuples()
    ]
    return frame.assign(run=found)


@cache
def _runs_of(study: str, part: str) -> frozenset[tuple[str, str]]:
    """Return data sets and methods of a section with the paper's protocol."""
    module = import_module(f"benchmarks.studies.{study}")
    options = Options(Path())
    section = (
        module.SECTIONS[part]
        if part
        else Section(module.grid, module.compute, module.tables)
    )
    runs = _as_if_run(section.grid(options))
    for follow in section.follow:
        runs = pd.concat([runs, _as_if_run(follow(runs, options))], ignore_index=True)
    runs = runs[runs["protocol"] == PAPER]
    if section.tables is evolutionary.tables_of_pairs:
        return _means_over_pairs(runs)
    return frozenset(zip(runs["dataset"], runs["method"], strict=True))


def _as_if_run(runs: pd.DataFrame) -> pd.DataFrame:
    """Return results as if all runs had gone equally well, to find the runs that follow from them."""
    parameters = pd.DataFrame(list(runs["parameters"]), index=runs.index)
    found = dict.fromkeys(("accuracy", "rand", "n", "d", "seconds", "peak_mib"), 1) | {
        "weights": ""
    }
    return runs.assign(
        status=OK, parameters=runs["parameters"].map(as_json), **found
    ).join(parameters)


def _means_over_pairs(runs: pd.DataFrame) -> frozenset[tuple[str, str]]:
    """Return the paper's name for the mean of each method over the pairs of a data set."""
    whole = evolutionary.whole_of_pairs(runs)
    counts = runs.groupby("method")["dataset"].nunique()
    return frozenset(
        (evolutionary.pairs_of(whole, count), str(method))
        for method, count in counts.items()
    )


def _by_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the number of figures of each table, and how many have a run and a kept run."""
    keys = ["paper", "table"]
    runs = frame.groupby(keys, sort=False)["run"].sum().rename("runs").reset_index()
    return runs.merge(counts_by(compared(), keys), on=keys)


if __name__ == "__main__":
    figures = coverage()
    tables = _by_table(figures)
    print(tables.to_string(index=False))
    kept = tables[[FULL, QUICK, NONE]].sum()
    print(
        f"{figures['run'].sum()} of the {len(figures)} figures have a run. Kept are "
        f"{kept[FULL]} full and {kept[QUICK]} quick runs; {kept[NONE]} figures have none."
    )
