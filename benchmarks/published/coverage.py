"""Which figures of the papers' tables have a run of ours beside them, counted from the grids of the studies.

``python -m benchmarks.published.coverage`` prints them by table. A run counts if the
grid of the full scale has it by the paper's protocol, under the names of the data set
and of the method; nothing is computed. Beside these stand the figures by their kept
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

SECTIONS = {  # studies and their sections that fill a table
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
    """The published figures of methods in tables, with a column "run".

    Returns
    -------
    DataFrame
        Rows of `published`; "run" says whether a study has a run beside the figure.

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
    """Data sets and methods of a section by the paper's protocol."""
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
    """Results of runs that all went equally well, for the runs that follow from them."""
    parameters = pd.DataFrame(list(runs["parameters"]), index=runs.index)
    found = dict.fromkeys(("accuracy", "rand", "n", "d", "seconds", "peak_mib"), 1) | {
        "weights": ""
    }
    return runs.assign(
        status=OK, parameters=runs["parameters"].map(as_json), **found
    ).join(parameters)


def _means_over_pairs(runs: pd.DataFrame) -> frozenset[tuple[str, str]]:
    """The paper's name of the mean of each method over the pairs of a set."""
    whole = evolutionary.whole_of_pairs(runs)
    counts = runs.groupby("method")["dataset"].nunique()
    return frozenset(
        (evolutionary.pairs_of(whole, count), str(method))
        for method, count in counts.items()
    )


def _by_table(frame: pd.DataFrame) -> pd.DataFrame:
    """How many figures of each table there are, have a run, and have a kept one."""
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
