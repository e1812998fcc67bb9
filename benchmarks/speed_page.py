"""Write ``docs/speed.csv`` and ``docs/speed.txt``: the table of the study ``speed``, and its machine."""

from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.journal import whole_file
from benchmarks.methods import KMEANS
from benchmarks.papers import DOCS
from benchmarks.tables import write_table
from mmcnb import InputError

TABLE = "speed.csv"
MACHINE = "speed.txt"
LIBRARIES = ("mmcnb", "python", "numpy", "scipy", "numba", "scikit-learn")


def write_page(folder: Path, docs: Path = DOCS) -> Path:
    """Write the measured figures, and a sentence about the machine.

    Parameters
    ----------
    folder : Path
        Folder of the study's ``speed.csv``.
    docs : Path, default=DOCS
        Folder of the pages.

    Returns
    -------
    Path
        Path of the table, which ``scaling.md`` shows.

    Raises
    ------
    InputError
        If the study has not run.
    """
    source = folder / TABLE
    if not source.exists():
        raise InputError(
            f"{source} is missing: run python -m benchmarks speed --out {folder} first."
        )
    table = pd.read_csv(source)
    write_table(readable(table), docs / TABLE)
    with whole_file(docs / MACHINE) as aside:
        aside.write_text(machine(table.iloc[0]) + "\n", encoding="utf-8")
    return docs / TABLE


def readable(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with figures, in readable cells.

    Examples
    --------
    >>> import pandas as pd
    >>> from benchmarks.speed_page import readable
    >>> measured = {"dataset": "a9a", "n": 32561, "d": 123, "method": "k-means"}
    >>> measured |= {"seconds": 0.5, "ratio": 1.0, "to": "k-means"}
    >>> readable(pd.DataFrame([measured])).iloc[0].tolist()
    ['a9a, 32,561 × 123', 'k-means', '0.5', '1', '', '']
    """
    shown = table[table["seconds"].notna()]
    return pd.DataFrame(
        {
            "data": [_data(row) for row in shown.to_dict("records")],
            "method": shown["method"],
            "seconds": shown["seconds"].map(_number),
            "ratio": [_ratio(row) for row in shown.to_dict("records")],
            "peak, MiB": _column(shown, "peak_mib").map("{:.0f}".format),
            "ARI": _column(shown, "ari").map("{:.2f}".format),
        }
    ).replace("nan", "")


def machine(row: pd.Series) -> str:
    """Return a sentence about the machine and the library versions of a run."""
    versions = ", ".join(f"{name} {row[name]}" for name in LIBRARIES)
    processor = row["processor"] if isinstance(row["processor"], str) else "unknown"
    blas = row["BLAS"] if isinstance(row["BLAS"], str) else "unknown"
    return (
        f"Processor: {processor}; {row['cores']} cores; BLAS: {blas}; "
        f"versions: {versions}."
    )


def _column(table: pd.DataFrame, name: str) -> pd.Series:
    return table.get(name, pd.Series(float("nan"), table.index))


def _data(row: dict[str, Any]) -> str:
    if pd.isna(row["n"]):
        return str(row["dataset"])
    times = "×"  # noqa: RUF001
    return f"{row['dataset']}, {int(row['n']):,} {times} {int(row['d']):,}"


def _ratio(row: dict[str, Any]) -> str:
    """Return the ratio to k-means, or to another peer followed by its name."""
    if pd.isna(row["ratio"]):
        return ""
    of_peer = "" if row["to"] == KMEANS else f" of {row['to']}"
    return _number(row["ratio"]) + of_peer


def _number(value: float) -> str:
    return f"{value:.2g}" if value < 100 else f"{value:.0f}"
