"""Kept figures: ``results/STUDY.csv`` has the figures of the papers that a study measured.

``python -m benchmarks keep --out DIR`` adds the runs of the studies in a folder, and
``python -m benchmarks published`` compares the kept figures with the papers.
``published/sources.csv`` names the study that measures each table or curve,
``published/reasons.csv`` says why a published figure has no run, and
``published/worse.csv`` why a figure of a full run is worse. A quick run has fewer rows
or grid points than the paper, so its figures are never compared with published ones.
"""

import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.protocol import PAPER
from benchmarks.published import read_csv, table_figures
from benchmarks.report.summary import GROUP, Study, chosen, direction, read
from benchmarks.tables import write_table
from mmcnb import InputError

FOLDER = Path(__file__).with_name("results")
STUDIES = (
    "small",
    "mnist",
    "adult",
    "usps",
    "eta",
    "rls",
    "evolutionary",
    "mkc",
    "scm",
)
KEY = ["paper", "table", "dataset", "method", "metric"]
POINT = [*KEY, "protocol", "at"]  # columns of a kept figure
COLUMNS = [*POINT, "value", "sd", "published", "setting", "command", "commit", "date"]
LARGEST = "largest_ari"
FULL = "full"
QUICK = "quick"
NONE = "none"
SCALES = (FULL, QUICK, NONE)  # kinds of kept run of a published figure
DIGITS = {"ari": 2, LARGEST: 2, "rand": 3}  # digits as printed; other rates have 4


# -- keeping ---------------------------------------------------------------------------


def keep(folder: Path, target: Path = FOLDER) -> list[Path]:
    """Add the figures of the studies in a folder to the kept figures.

    A new figure replaces an old one, except that a figure of a quick run never replaces
    one of a full run. Runs with ``--rows`` count as quick runs.

    Parameters
    ----------
    folder : Path
        Folder with the frames of the studies.
    target : Path, default=FOLDER
        Folder of the kept figures.

    Returns
    -------
    list of Path
        The files that were written, one per study.

    Raises
    ------
    InputError
        If the folder has no frame of a paper's study, or if a frame is damaged, has no
        journal, or is from a smoke run.
    """
    written = []
    for name in STUDIES:
        if (path := folder / f"{name}.parquet").exists():
            kept = target / f"{name}.csv"
            study = read(path)
            if study.header.get("scale", "smoke") == "smoke":
                raise InputError(
                    f"{path} has no journal, or is a smoke run, "
                    "whose figures mean nothing."
                )
            old = [read_kept(kept)] if kept.exists() else []
            write_table(merged([*old, figures_of(study)]), kept)
            written.append(kept)
    if not written:
        studies = ", ".join(STUDIES)
        raise InputError(
            f"there is no frame (STUDY.parquet) of {studies} in {folder}; "
            "run one first."
        )
    return written


def merged(frames: list[pd.DataFrame]) -> pd.DataFrame:
    """Keep the last of several equal figures; a full run replaces a whole quick curve."""
    rows = pd.concat(frames, ignore_index=True)[COLUMNS]
    is_full = rows["setting"].str.startswith(FULL)
    curve = [rows[name] for name in POINT if name != "at"]
    has_full = is_full.groupby(curve).transform("any")
    return rows[is_full | ~has_full].drop_duplicates(POINT, keep="last")


def figures_of(study: Study) -> pd.DataFrame:
    """Return the papers' figures in a study, in the columns of a kept file."""
    if study.runs:
        values = with_pairs(chosen(study))
    else:
        values = study.values.assign(x=np.nan, rest="{}")
    groups = values.groupby([*GROUP, "rest", "metric"], dropna=False)["value"]
    measured = groups.agg(mean="mean", sd="std", max="max", runs="count").reset_index()

    sources = read_csv("sources").astype({"part": object}).fillna({"part": ""})
    sources = sources[sources["study"] == study.name]
    figures = [_of_source(measured, study, source) for source in sources.itertuples()]
    rows = pd.concat(figures, ignore_index=True)

    printed = table_figures()[[*KEY, "value"]]
    printed = printed.rename(columns={"value": "published"})
    rows = rows.merge(printed, how="left", on=KEY)
    rows.loc[rows["protocol"] != PAPER, "published"] = np.nan
    facts = {name: study.versions.get(name, "") for name in ("commit", "date")}
    return rows.assign(**facts).round({"value": 6, "sd": 6})[COLUMNS]


def with_pairs(values: pd.DataFrame) -> pd.DataFrame:
    """Replace the section "pairs" by means over its data sets, as the paper publishes them."""
    is_pair = values["part"] == "pairs"
    pairs = values[is_pair]
    prefixes = [name.rpartition("-")[0] for name in pairs["dataset"]]
    pairs = pairs.assign(prefix=prefixes, x=np.nan, rest="{}")
    keys = ["prefix", "part", "protocol", "method", "x", "rest", "metric"]
    means = pairs.groupby(keys, dropna=False)[["value", "n"]].mean().reset_index()
    counts = pairs.groupby("prefix")["dataset"].nunique()
    means["dataset"] = [f"{name}, {counts[name]} pairs" for name in means["prefix"]]
    return pd.concat([values[~is_pair], means.drop(columns="prefix")])


def _of_source(measured: pd.DataFrame, study: Study, source: Any) -> pd.DataFrame:
    """Return the rows for one line of the sources: those of a table, or the points of a curve."""
    is_wanted = measured["part"] == source.part
    is_wanted &= measured["metric"] == source.measure
    rows = measured[is_wanted]
    printed = table_figures()
    printed = printed[printed["paper"] == source.paper]
    here = printed[printed["table"] == source.table]
    if len(here):  # other data sets and methods of the study belong to other tables
        absent = {*printed["method"]} - {*here["method"]}
        in_table = rows["dataset"].isin(here["dataset"])
        rows = rows[in_table & ~rows["method"].isin(absent)]
        at = dict.fromkeys(rows.index, "")
    else:
        at = points_of(study, source.part, rows)
    scale = QUICK if study.header.get("rows") else study.header["scale"]
    return pd.DataFrame(
        {
            "dataset": rows["dataset"],
            "protocol": rows["protocol"],
            "method": rows["method"],
            "paper": source.paper,
            "table": source.table,
            "metric": source.metric,
            "at": pd.Series(at),
            "value": rows[source.statistic],
            "sd": rows["sd"],
            "setting": [f"{scale}; {setting}" for setting in _settings(rows)],
            "command": command_of(study, source.part),
        }
    )


def points_of(study: Study, part: str, rows: pd.DataFrame) -> dict[Any, str]:
    """Return the coordinates of the points of a curve.

    The coordinate of a point is the swept parameter, and the number of rows if a data
    set has several sizes.
    """
    swept = study.view.sweeps.get(part, "")
    has_sizes = not swept or rows.groupby("dataset")["n"].nunique().max() > 1
    places = {}
    for row in rows.itertuples():
        words = []
        if swept:
            words.append(f"{swept}={row.x:g}")
        if has_sizes:
            words.append(f"{row.n:.0f} rows")
        places[row.Index] = ", ".join(words)
    return places


def _settings(rows: pd.DataFrame) -> Iterator[str]:
    """Yield the setting of each figure as text: parameters, runs and rows."""
    for row in rows.itertuples():
        parameters = read_parameters(row.rest)
        runs = f"{row.runs:.0f} {'run' if row.runs == 1 else 'runs'}"
        yield "; ".join([*parameters, runs, f"{row.n:.0f} rows"])


def read_parameters(text: str) -> list[str]:
    """Return parameters in JSON as readable texts.

    Examples
    --------
    >>> from benchmarks.kept import read_parameters
    >>> read_parameters('{"width": 0.5, "starts": "mixed"}')
    ['width=0.5', 'starts=mixed']
    """
    return [f"{name}={value}" for name, value in json.loads(text).items()]


def command_of(study: Study, part: str) -> str:
    """Return the command that repeats a section of a study."""
    module = import_module(f"benchmarks.studies.{study.name}")
    section = part.partition(",")[0]
    words = ["python -m benchmarks", study.name]
    if section in getattr(module, "SECTIONS", ()):
        words.append(f"--part {section}")
    if study.header["scale"] == QUICK:
        words.append("--quick")
    if study.header["rows"]:
        words.append(f"--rows {study.header['rows']}")
    return " ".join(words)


# -- beside the published figures ------------------------------------------------------


def results(folder: Path = FOLDER) -> pd.DataFrame:
    """Return all kept figures, in `COLUMNS`; an empty frame if there are none."""
    found = [read_kept(path) for path in sorted(folder.glob("*.csv"))]
    return pd.concat(found or [pd.DataFrame(columns=COLUMNS)], ignore_index=True)


def read_kept(path: Path) -> pd.DataFrame:
    """Read a kept file; empty texts stay empty."""
    numbers: dict[str, Any] = dict.fromkeys(("value", "sd", "published"), float)
    texts: dict[str, Any] = dict.fromkeys({*COLUMNS} - {*numbers}, str)
    return pd.read_csv(
        path,
        dtype=numbers | texts,
        keep_default_na=False,
        na_values=dict.fromkeys(numbers, ""),
    )


def compared(folder: Path = FOLDER) -> pd.DataFrame:
    """Return every figure of a published table, with our run or the reason why there is none.

    Parameters
    ----------
    folder : Path, default=FOLDER
        Folder of the kept figures.

    Returns
    -------
    DataFrame
        Paper, table, dataset, method, metric, value and sd as published; ours, our sd,
        setting, command, commit and date (NaN without a run); scale: "full", "quick" or
        "none"; excess: by how much our figure is worse than the published one, beyond
        the larger deviation, at most 0 if it is as good, NaN for quick runs, seconds
        and counts; and reason: why there is no run, or why our figure is worse, else
        "".

    Examples
    --------
    >>> from benchmarks.kept import compared
    >>> frame = compared()
    >>> len(frame), bool((frame["reason"] != "")[frame["ours"].isna()].all())
    (711, True)
    """
    runs = (
        results(folder)
        .query("protocol == @PAPER and at == ''")
        .drop(columns=["protocol", "at", "published"])
    )
    frame = table_figures().merge(
        runs.rename(columns={"value": "ours", "sd": "our sd"}), how="left", on=KEY
    )
    is_quick = frame["setting"].str.startswith(QUICK, na=False)
    has_none = frame["ours"].isna()
    frame["scale"] = np.select([has_none, is_quick], [NONE, QUICK], FULL)
    excess = pd.Series([_excess(row) for row in frame.to_dict("records")])
    frame["excess"] = excess.where(frame["scale"] == FULL)
    absent, worse = (
        read_csv(name).astype(object).fillna("") for name in ("reasons", "worse")
    )
    listed = np.select([has_none, frame["excess"] > 0], [1, 2])
    tables = (None, absent, worse)
    rows = zip(frame.itertuples(), listed, strict=True)
    return frame.assign(
        reason=[
            "" if not which else reason_of(row, tables[which]) for row, which in rows
        ]
    )


def reason_of(row: Any, reasons: pd.DataFrame) -> str:
    """Return the first reason whose names match a figure; "" if no reason matches.

    An empty name matches all figures.
    """
    for reason in reasons.itertuples():
        if all(getattr(reason, name) in ("", getattr(row, name)) for name in KEY):
            return str(reason.reason)
    return ""


def _excess(row: dict[str, Any]) -> float:
    """Return by how much our figure is worse than the published one, beyond the larger deviation.

    The excess is rounded to the digits that are printed.
    """
    metric = row["metric"]
    sign = direction(metric)
    if metric == "seconds" or not sign:
        return float("nan")
    digits = DIGITS.get(metric, 4)
    ours = np.round(row["ours"], digits)
    deviation = np.nanmax([row["sd"], row["our sd"], 0.0])
    return float(np.round(sign * (row["value"] - ours) - deviation, digits))


def counts_by(frame: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Count the published figures of each group by the scale of their kept run.

    Parameters
    ----------
    frame : DataFrame
        From `compared`.
    keys : list of str
        Columns that identify a group, in the order of the frame.

    Returns
    -------
    DataFrame
        The keys, figures, and "full", "quick" and "none", which sum to the figures.

    Examples
    --------
    >>> from benchmarks.kept import compared, counts_by
    >>> counts = counts_by(compared(), ["paper"])
    >>> bool((counts["figures"] == counts[["full", "quick", "none"]].sum(axis=1)).all())
    True
    """
    scales = pd.DataFrame({name: frame["scale"] == name for name in SCALES})
    counted = pd.concat([frame[keys], scales.assign(figures=1)], axis=1)
    counts = counted.groupby(keys, sort=False)[["figures", *SCALES]].sum()
    return counts.astype(int).reset_index()


def summary(folder: Path = FOLDER) -> str:
    """Return text: how many published figures have a run, and which are worse."""
    frame = compared(folder)
    counts = frame["scale"].value_counts().reindex(SCALES, fill_value=0)
    full = frame[frame["scale"] == FULL]
    judged = full.dropna(subset="excess")
    good = judged["excess"] <= 0
    lines = [
        f"Of {len(frame)} published figures of tables, {counts[FULL]} have a full run, "
        f"{counts[QUICK]} a quick one, and {counts[NONE]} none.",
        f"{_share(good.sum(), len(judged))} errors and scores of full runs are as good "
        "as published, or better, within the larger deviation.",
    ]
    lines += ["", "Worse, by excess:"]
    worse = judged[~good].sort_values("excess", ascending=False, kind="stable")
    for row in worse.itertuples():
        excess = f", {row.excess:.4g} beyond; {row.reason}".rstrip("; ")
        lines.append(_line(row) + excess)
    lines += [
        "",
        "Seconds and counts, which depend on the machine and the stopping rule:",
    ]
    unjudged = full[full["excess"].isna()]
    lines += [_line(row) for row in unjudged.itertuples()]
    lines += ["", "Quick runs, which are not compared:"]
    for row in frame[frame["scale"] == QUICK].itertuples():
        lines.append(f"{_names(row)}: {row.ours:.4g} ({row.setting})")
    return "\n".join(lines)


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({part / max(whole, 1):.0%})"


def _names(row: Any) -> str:
    return f"{row.paper} {row.table}: {row.dataset}, {row.method}, {row.metric}"


def _line(row: Any) -> str:
    return f"{_names(row)}: {row.ours:.4g} beside {row.value:.4g} ({row.setting})"
