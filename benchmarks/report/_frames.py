"""Frames from disk: the tidy file of a study, its goals and its header; one sentence for each fault."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from mmcnb.errors import InputError

IDENTITY = ["part", "dataset", "protocol", "method", "parameters", "seed"]
FACTS = ["n", "d", "seconds", "compile_seconds", "peak_mib"]
TEXTS = ["study", "part", "dataset", "protocol", "method", "parameters", "metric", "status", "reason"]
NUMBERS = ["seed", "value", *FACTS]
COLUMNS = [*TEXTS, *NUMBERS, "versions", "digest"]
GOAL_COLUMNS = ["goal", "figure", "bound", "unit", "verdict"]
FAILED = "failed"
SHARES = {"error", "accuracy", "imbalance", "sparsity"}


class Study(NamedTuple):
    """What is on disk of a study.

    Parameters
    ----------
    name : str
        Its name.
    cells : DataFrame
        One row a computed cell: its identity, facts, and a column for each metric.
    metrics : list of str
        The columns of ``cells`` that are metrics.
    failed : DataFrame
        The identity of each failed cell, and its reason.
    goals : DataFrame
        Goals and verdicts; empty where there are none.
    header : dict
        What the journal says of the run: scale and rows; empty where there is no journal.
    versions : dict
        Versions of libraries, and the machine; a value that differs between cells lists all.
    digests : dict of str to str
        Digest of each data set.
    """

    name: str
    cells: pd.DataFrame
    metrics: list[str]
    failed: pd.DataFrame
    goals: pd.DataFrame
    header: dict[str, Any]
    versions: dict[str, str]
    digests: dict[str, str]


def read_all(out: Path) -> list[Study]:
    """Read every study of a folder, by name.

    Parameters
    ----------
    out : Path
        Folder with the frames.

    Returns
    -------
    list of Study
        One a Parquet file.

    Raises
    ------
    InputError
        If the folder has no frame, or one cannot be read.
    """
    paths = sorted(out.glob("*.parquet"))
    if not paths:
        raise InputError(
            f"there is no frame of a study (*.parquet) in {out}; "
            f"run python -m benchmarks STUDY --out {out} first."
        )
    return [read(path) for path in paths]


def read(path: Path) -> Study:
    """Read one study.

    Parameters
    ----------
    path : Path
        Its Parquet file; goals and journal are looked for beside it.

    Returns
    -------
    Study
        One row a cell; failed ones apart.

    Raises
    ------
    InputError
        If the file is damaged or of another format.
    """
    tidy = _tidy(path)
    failed = tidy[tidy["status"] == FAILED].drop_duplicates(IDENTITY)
    done = tidy[tidy["status"] != FAILED]
    cells, metrics = _wide(done, path)
    return Study(
        path.stem,
        cells,
        metrics,
        failed[[*IDENTITY, "reason"]].sort_values(IDENTITY, ignore_index=True),
        _goals(path.with_name(f"{path.stem}-goals.csv")),
        _header(path.with_suffix(".jsonl")),
        _versions(tidy["versions"]),
        dict(done[["dataset", "digest"]].dropna().sort_values(["dataset", "digest"]).itertuples(index=False)),
    )


def is_share(metric: str) -> bool:
    """Whether a metric is shown in per cent."""
    return not SHARES.isdisjoint(metric.split("_"))


def _tidy(path: Path) -> pd.DataFrame:
    remedy = f"delete it and run python -m benchmarks {path.stem} again"
    try:
        tidy = pd.read_parquet(path, engine="pyarrow")
    except (OSError, ValueError) as error:  # ArrowInvalid is a ValueError
        reason = str(error).partition("\n")[0].rstrip(".")
        raise InputError(f"{path} is not a readable Parquet file ({reason}); {remedy}.") from None
    missing = [name for name in COLUMNS if name not in tidy.columns]
    if missing:
        raise InputError(f"{path} is no frame of a study: it lacks {', '.join(missing)}; {remedy}.")
    tidy = tidy[COLUMNS].copy()
    try:
        tidy[NUMBERS] = tidy[NUMBERS].astype(float)
    except (TypeError, ValueError):
        raise InputError(f"{path} has text where numbers belong ({', '.join(NUMBERS)}); {remedy}.") from None
    tidy[TEXTS] = tidy[TEXTS].astype(object).where(tidy[TEXTS].notna(), "").astype(str)
    return tidy


def _wide(done: pd.DataFrame, path: Path) -> tuple[pd.DataFrame, list[str]]:
    """One row a cell."""
    facts = done.drop_duplicates(IDENTITY).set_index(IDENTITY)[FACTS]
    measured = done[(done["metric"] != "") & ~done["metric"].isin(FACTS)]
    keys = [*IDENTITY, "metric"]
    if measured.duplicated(keys).any():
        first = measured[measured.duplicated(keys)].iloc[0]
        raise InputError(
            f"{path} has {first['metric']} of {first['method']} on {first['dataset']} twice for one seed; "
            f"delete it and run python -m benchmarks {path.stem} again."
        )
    values = measured.set_index(keys)["value"].unstack("metric")
    values.columns.name = None
    cells = facts.join(values).reset_index().sort_values(IDENTITY, ignore_index=True)
    return cells, sorted(values.columns)


def _goals(path: Path) -> pd.DataFrame:
    if not path.exists():
        return pd.DataFrame(columns=GOAL_COLUMNS)
    try:
        goals = pd.read_csv(path)
        return goals[GOAL_COLUMNS]
    except (OSError, ValueError, KeyError):
        raise InputError(
            f"{path} is no table of goals ({', '.join(GOAL_COLUMNS)}); delete it and run the study again."
        ) from None


def _header(path: Path) -> dict[str, Any]:
    """First line of the journal; a run says what is wrong with it, so that a fault is no news here."""
    try:
        with path.open(encoding="utf-8") as lines:
            header = json.loads(lines.readline())
    except (OSError, ValueError):
        return {}
    return header if isinstance(header, dict) else {}


def _versions(column: pd.Series) -> dict[str, str]:
    found: dict[str, set[str]] = {}
    for text in sorted(set(column.dropna())):
        for name, value in json.loads(text or "{}").items():
            found.setdefault(name, set()).add(str(value))
    return {name: " or ".join(sorted(values)) for name, values in found.items()}
