"""Frames in a folder, their means over the seeds, and the published figures."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.journal import COLUMNS
from benchmarks.protocol import LABEL_FREE, PAPER
from benchmarks.published import published
from benchmarks.run import FAILED
from benchmarks.tables import differing, slopes_over
from mmcnb import InputError

YARDSTICKS = ("k-means", "coin flips")
PUBLISHED = "published"
PROTOCOLS = (PAPER, PUBLISHED, LABEL_FREE)
IDENTITY = ["part", "dataset", "protocol", "method", "parameters", "seed"]
GROUP = ["part", "dataset", "n", "protocol", "method", "x"]
RESOURCES = ["seconds", "peak_mib"]
NUMBERS = ["seed", "value", "n", "d", "seconds", "compile_seconds", "peak_mib"]
SHARES = {"error", "accuracy", "imbalance", "sparsity"}
PREFERRED = ("balanced_error", "error", "accuracy", "ari", "rand")
HIGHER = {"accuracy", "ari", "rand", "nmi", "auc", "precision", "agreement"}
LOWER = {"error", "objective", "seconds", "mib"}
FEWEST_SIZES = 3  # for a slope over rows, because two points have no interval


class View(NamedTuple):
    """How the page shows a study.

    Parameters
    ----------
    ours : tuple of str, default=()
        Methods that are listed first; the figures show only these methods, k-means and
        coin flips.
    papers : tuple of str, default=()
        Names of the study's papers in the published figures.
    metric : str, default=""
        The metric that figures show if it was measured.
    sweeps : mapping of str to str, default={}
        For a section of the study, the parameter on the horizontal axis.
    by_rows : bool, default=False
        Whether all data sets are sizes of the same one, so that the horizontal axis
        shows the number of rows.
    growth_from : mapping of str to int, default={}
        For a method, the number of rows from which its time grows. With fewer rows,
        most of its time is spent on a sample of fixed size, and a slope would not
        describe growth.
    """

    ours: tuple[str, ...] = ()
    papers: tuple[str, ...] = ()
    metric: str = ""
    sweeps: Mapping[str, str] = {}
    by_rows: bool = False
    growth_from: Mapping[str, int] = {}


# Methods that spend most of their time on a sample of fixed size, up to these numbers
# of rows.
OF_SAMPLES = dict.fromkeys(("SKMMC", "SKMMC, widths between", "CPMMC"), 30_000)
# In the order of the sections on the report page.
VIEWS = {
    "small": View(("SKMMC", "SKMMCv2"), ("SKMMC",)),
    "mnist": View(("SKMMC",), ("SKMMC",)),
    "adult": View(("SKMMC",), ("SKMMC",), by_rows=True, growth_from=OF_SAMPLES),
    "usps": View(("SKMMC",), ("SKMMC",), by_rows=True, growth_from=OF_SAMPLES),
    "eta": View(("SKMMC",), sweeps={"": "eta"}),
    "evolutionary": View(
        ("EvoMMC", "FastEvoMMC"), ("EvoMMC",), "error", {"restarts": "restarts"}
    ),
    "rls": View(("UMC-RLS", "mixed shaking", "UnsupervisedRLS"), ("UMC-RLS",), "ari"),
    "mkc": View(
        ("MKC", "MKC of a sample"),
        ("MKC", "MKC thesis"),
        sweeps={"speed, eta": "eta", "speed, kernels": "kernels"}
        | {
            "curves, accuracy": "round",
            "curves, violation": "step",
            "curves, time": "eta",
        },
    ),
    "scm": View(
        ("SCM",),
        metric="average_precision",
        sweeps={"spaces": "clusters", "rounds": "rounds"},
    ),
    "peers": View(metric="ari"),
    "choice": View(("MaximumMarginClustering",), metric="ari"),
    "columns": View(("MaximumMarginClustering",), metric="ari"),
    "number": View(("MaximumMarginClustering",), metric="ari"),
    "basis": View(metric="agreement", sweeps={"": "landmarks"}),
}


class Study(NamedTuple):
    """The frame of a study.

    Parameters
    ----------
    name : str
        Its name.
    view : View
        How the study is shown.
    header : dict
        The first line of the study's journal, with scale and rows.
    values : DataFrame
        One row per metric of each run, with the identity of the run, n, metric and
        value.
    runs : int
        Number of computed runs.
    failed : DataFrame
        The identity and the reason of each run that failed.
    versions : dict of str to str
        Versions of libraries, and the machine; values that differ between runs are all
        listed.
    digests : dict of str to str
        Digest of each data set.
    """

    name: str
    view: View
    header: dict[str, Any]
    values: pd.DataFrame
    runs: int
    failed: pd.DataFrame
    versions: dict[str, str]
    digests: dict[str, str]


def read_all(folder: Path) -> list[Study]:
    """Read every study of a folder, in the order of the page.

    Parameters
    ----------
    folder : Path
        Folder with the frames.

    Returns
    -------
    list of Study
        One for each Parquet file.

    Raises
    ------
    InputError
        If the folder has no frame, or a frame is damaged or has another format.
    """
    found = {path.stem: path for path in sorted(folder.glob("*.parquet"))}
    if not found:
        raise InputError(
            f"there is no frame of a study (*.parquet) in {folder}; "
            f"run python -m benchmarks STUDY --out {folder} first."
        )
    return [
        read(found[name]) for name in dict.fromkeys((*VIEWS, *found)) if name in found
    ]


def read(path: Path) -> Study:
    """Read the frame of one study.

    Raises
    ------
    InputError
        If the frame is damaged or has another format.
    """
    tidy = _tidy(path)
    failed = tidy["status"] == FAILED
    done = tidy[~failed]
    runs = done.drop_duplicates(IDENTITY)
    resources = runs[[*IDENTITY, "n", *RESOURCES]].melt(
        [*IDENTITY, "n"], var_name="metric"
    )
    values = pd.concat([done[resources.columns], resources]).dropna(subset="value")
    repeated = values[values.duplicated([*IDENTITY, "metric"])]
    if len(repeated):
        twice = "has {metric} of {method} on {dataset} twice for one seed"
        raise _damaged(path, twice.format(**repeated.iloc[0]))
    stated = pd.DataFrame(
        [json.loads(text) for text in tidy["versions"].unique()], dtype=object
    )
    versions = {
        name: " or ".join(sorted({*map(str, stated[name].dropna())})) for name in stated
    }
    return Study(
        name=path.stem,
        view=VIEWS.get(path.stem, View()),
        header=_header(path.with_suffix(".jsonl")),
        values=values,
        runs=len(runs),
        failed=tidy[failed]
        .drop_duplicates(IDENTITY)[[*IDENTITY, "reason"]]
        .sort_values(IDENTITY),
        versions=versions,
        digests=dict(
            runs[["dataset", "digest"]]
            .dropna()
            .sort_values(["dataset", "digest"])
            .to_numpy()
        ),
    )


def _header(journal: Path) -> dict[str, Any]:
    """Return the first line of the journal, with scale and rows; empty if there is none."""
    if not journal.exists():
        return {}
    with journal.open(encoding="utf-8", errors="replace") as lines:
        first = lines.readline()
    try:
        return dict(json.loads(first))
    except (ValueError, TypeError):
        raise _damaged(journal, "has a damaged first line") from None


def _damaged(path: Path, fault: str) -> InputError:
    return InputError(
        f"{path} {fault}; delete it and run python -m benchmarks {path.stem} again."
    )


def _tidy(path: Path) -> pd.DataFrame:
    try:
        tidy = pd.read_parquet(path, engine="pyarrow")
    except (OSError, ValueError) as error:  # ArrowInvalid is a ValueError
        reason = str(error).partition("\n")[0].rstrip(".")
        raise _damaged(path, f"is not a readable Parquet file ({reason})") from None
    if missing := [name for name in COLUMNS if name not in tidy]:
        raise _damaged(
            path, f"is not the frame of a study: it lacks {', '.join(missing)}"
        )
    if texts := list(tidy[NUMBERS].select_dtypes(exclude="number")):
        raise _damaged(path, f"has text where numbers belong ({', '.join(texts)})")
    return tidy


def summarise(study: Study) -> pd.DataFrame:
    """Return statistics of each metric over the seeds, and the published figures.

    With the paper's protocol, the parameters of a method on a data set are those with
    the best mean. Without classes, parameters cannot be selected, so runs with
    different parameters count as different methods.

    Parameters
    ----------
    study : Study
        From `read`, with runs.

    Returns
    -------
    DataFrame
        part, dataset, n, protocol ("published" for the figures of the papers), method,
        x (the swept parameter, or NaN), metric, mean, sd (ddof = 1) and count; name of
        the data set, with the number of rows if it has several; and to sort by: whether
        a method is ours, order of the methods and rank of the protocols. The order of
        these rows does not depend on the order of the runs.
    """
    view = study.view
    groups = chosen(study).groupby([*GROUP, "metric"], dropna=False)["value"]
    measured = groups.agg(mean="mean", sd="std", count="count").reset_index()
    table = pd.concat([measured, _published(measured, view)], ignore_index=True)

    places = {method: place_of(method, view) for method in table["method"]}
    methods = sorted(places, key=lambda method: places[method])
    ours = {method for method in methods if places[method][0] < len(view.ours)}
    table["ours"] = not view.ours or table["method"].isin(ours)
    table["order"] = table["method"].map(methods.index)
    table["rank"] = table["protocol"].map(PROTOCOLS.index)

    has_sizes = table.groupby(["part", "dataset"])["n"].transform("nunique") > 1
    sizes = table["n"].map(", {:,.0f} rows".format).where(has_sizes, "")
    table["name"] = table["dataset"] + sizes
    keys = ["part", "n", "dataset", "order", "rank", "protocol", "x", "metric"]
    return table.sort_values(keys, ignore_index=True)


def chosen(study: Study) -> pd.DataFrame:
    """Return values at the selected parameters, which have the best mean by the paper's protocol.

    Parameters
    ----------
    study : Study
        From `read`, with runs.

    Returns
    -------
    DataFrame
        Rows of ``study.values`` with x (the swept parameter, or NaN) and rest (the
        others, as JSON text).
    """
    view = study.view
    values = study.values.copy()
    split = [
        _split(text, view.sweeps.get(part, ""))
        for part, text in values[["part", "parameters"]].to_numpy()
    ]
    values[["x", "rest"]] = pd.DataFrame(split, index=values.index)
    groups = []
    for _, group in values.groupby(GROUP, dropna=False):
        if group["protocol"].iloc[0] == PAPER:
            groups.append(_best(group, view))
        else:
            groups.append(_set_apart(group))
    return pd.concat(groups)


def _split(text: str, swept: str) -> tuple[float, str]:
    """Return the value of the swept parameter, and the other parameters."""
    parameters = json.loads(text)
    value = parameters.pop(swept, None)
    x = float(value) if isinstance(value, int | float) else np.nan
    return x, json.dumps(parameters, sort_keys=True)


def _best(group: pd.DataFrame, view: View) -> pd.DataFrame:
    """Return the rows with the parameters that have the best mean."""
    metric = primary(group["metric"], view)
    means = group[group["metric"] == metric].groupby("rest")["value"].mean()
    best = means.idxmax() if direction(metric) > 0 else means.idxmin()
    return group[group["rest"] == best]


def _set_apart(group: pd.DataFrame) -> pd.DataFrame:
    """Add parameters that differ to the names of the methods."""
    suffixes = {}
    for text, parameters in differing(group["rest"].unique()).items():
        words = [f", {name}={value}" for name, value in parameters.items()]
        suffixes[text] = "".join(words)
    return group.assign(method=group["method"] + group["rest"].map(suffixes))


def _published(table: pd.DataFrame, view: View) -> pd.DataFrame:
    """Return the published figures of measured data sets, as rows with their own protocol."""
    keys = ["dataset", "method", "metric"]
    printed = published()
    printed = printed[printed["paper"].isin(view.papers)].drop_duplicates(keys)
    means = printed[[*keys, "value"]].rename(columns={"value": "mean"})
    measured = table[["part", "n", *keys]].drop_duplicates()
    return measured.merge(means, on=keys).assign(protocol=PUBLISHED)


def is_share(metric: str) -> bool:
    """Return whether a metric is shown in per cent."""
    return not SHARES.isdisjoint(metric.split("_"))


def direction(metric: str) -> int:
    """Return -1 if less is better, 1 if more is better, and 0 if neither is."""
    words = set(metric.split("_"))
    return bool(words & HIGHER) - bool(words & LOWER)


def primary(metrics: Iterable[str], view: View) -> str:
    """Return the metric that the figures show.

    The metric is the view's, or else the first preferred metric, or else the first
    metric, or else seconds.
    """
    measured = sorted({*metrics} - {*RESOURCES})
    for name in (view.metric, *PREFERRED):
        if name in measured:
            return name
    return measured[0] if measured else "seconds"


def place_of(method: str, view: View) -> tuple[int, list[Any]]:
    """Return the sort key of a method: its group, then its name.

    Our methods come first, in the order of the view, and then other methods, k-means
    and coin flips. Parameters after the name of a method are ignored when deciding
    whether it is ours.
    """
    base, _, rest = method.partition(", ")
    known = base in YARDSTICKS or (base in view.ours and (not rest or "=" in rest))
    # Compare numbers within a name as numbers.
    words = re.split(r"(\d+(?:\.\d+)?)", method)
    name = [float(word) if place % 2 else word for place, word in enumerate(words)]
    return [*view.ours, "", *YARDSTICKS].index(base if known else ""), name


def grows(rows: pd.DataFrame, growth_from: Mapping[str, int]) -> pd.Series:
    """Return whether each row is in the range in which the time of its method grows, as in `View`."""
    least = rows["method"].map(dict(growth_from)).astype(float).fillna(0)
    return rows["n"] >= least


def slopes(rows: pd.DataFrame, growth_from: Mapping[str, int]) -> pd.DataFrame:
    """Return slopes of the means against the number of rows, for methods with enough sizes.

    Parameters
    ----------
    rows : DataFrame
        Rows of one metric, from `summarise`.
    growth_from : mapping of str to int
        As in `View`.
    """
    fits = slopes_over(rows[grows(rows, growth_from)], ["method", "protocol"], "mean")
    return fits[fits["sizes"] >= FEWEST_SIZES]
