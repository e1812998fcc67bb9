"""Frames of a folder, their means over the seeds, and the published figures beside them."""

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
from benchmarks.tables import log_slope
from mmcnb import InputError

YARDSTICKS = ("k-means", "coin flips")
PUBLISHED = "published"
PROTOCOLS = (PAPER, PUBLISHED, LABEL_FREE)
IDENTITY = ["part", "dataset", "protocol", "method", "parameters", "seed"]
GROUP = ["part", "dataset", "n", "protocol", "method", "x"]
RESOURCES = ["seconds", "peak_mib"]
NUMBERS = ["seed", "value", "n", "d", "seconds", "compile_seconds", "peak_mib"]
TEXTS = [name for name in COLUMNS if name not in (*NUMBERS, "versions", "digest")]
SHARES = {"error", "accuracy", "imbalance", "sparsity"}
PREFERRED = ("balanced_error", "error", "accuracy", "ari", "rand")
HIGHER = {"accuracy", "ari", "rand", "nmi", "auc", "precision", "agreement"}
LOWER = {"error", "objective", "seconds", "mib"}


class View(NamedTuple):
    """How the page shows a study.

    Parameters
    ----------
    ours : tuple of str, default=()
        Methods that come first; the figures show them beside k-means and coin flips alone.
    papers : tuple of str, default=()
        Names of its papers in the published figures.
    metric : str, default=""
        The metric that figures show, where it was measured.
    sweeps : mapping of str to str, default={}
        For a section of the study, the parameter on the horizontal axis.
    by_rows : bool, default=False
        Whether all data sets are sizes of one, so that rows are on the horizontal axis.
    """

    ours: tuple[str, ...] = ()
    papers: tuple[str, ...] = ()
    metric: str = ""
    sweeps: Mapping[str, str] = {}
    by_rows: bool = False


# In the order of the page.
VIEWS = {
    "small": View(("SKMMC", "SKMMCv2"), ("SKMMC",)),
    "mnist": View(("SKMMC",), ("SKMMC",)),
    "adult": View(("SKMMC",), ("SKMMC",), by_rows=True),
    "usps": View(("SKMMC",), ("SKMMC",), by_rows=True),
    "eta": View(("SKMMC",), sweeps={"": "eta"}),
    "evolutionary": View(("EvoMMC", "FastEvoMMC"), ("EvoMMC",), "error"),
    "rls": View(("UMC-RLS", "mixed shaking", "UnsupervisedRLS"), ("UMC-RLS",), "ari"),
    "mkc": View(
        ("MKC", "MKC of a sample"),
        ("MKC", "MKC thesis"),
        sweeps={"speed, eta": "eta", "speed, kernels": "kernels"},
    ),
    "scm": View(("SCM",), metric="average_precision", sweeps={"spaces": "clusters", "rounds": "rounds"}),
    "peers": View(metric="ari"),
    "basis": View(metric="agreement", sweeps={"": "landmarks"}),
}


class Study(NamedTuple):
    """The frame of a study.

    Parameters
    ----------
    name : str
        Its name.
    view : View
        How it is shown.
    values : DataFrame
        A row for each metric of each run: its identity, n, metric and value.
    runs : int
        How many runs were computed.
    failed : DataFrame
        The identity and the reason of each run that failed.
    versions : dict of str to str
        Versions of libraries, and the machine; values that differ between runs are all listed.
    digests : dict of str to str
        Digest of each data set.
    """

    name: str
    view: View
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
        If the folder has no frame, or one is damaged or of another format.
    """
    paths = sorted(folder.glob("*.parquet"))
    if not paths:
        raise InputError(
            f"there is no frame of a study (*.parquet) in {folder}; "
            f"run python -m benchmarks STUDY --out {folder} first."
        )
    order = {name: place for place, name in enumerate(VIEWS)}
    return [read(path) for path in sorted(paths, key=lambda path: order.get(path.stem, len(order)))]


def read(path: Path) -> Study:
    """Read the frame of one study.

    Raises
    ------
    InputError
        If it is damaged or of another format.
    """
    tidy = _tidy(path)
    failed = tidy["status"] == FAILED
    done = tidy[~failed]
    runs = done.drop_duplicates(IDENTITY)
    measured = done[(done["metric"] != "") & ~done["metric"].isin(RESOURCES)]
    repeated = measured[measured.duplicated([*IDENTITY, "metric"])]
    if len(repeated):
        first = repeated.iloc[0]
        raise _damaged(
            path, f"has {first['metric']} of {first['method']} on {first['dataset']} twice for one seed"
        )
    resources = runs[[*IDENTITY, "n", *RESOURCES]].melt([*IDENTITY, "n"], var_name="metric")
    return Study(
        path.stem,
        VIEWS.get(path.stem, View()),
        pd.concat([measured[resources.columns], resources]).dropna(subset="value"),
        len(runs),
        tidy[failed].drop_duplicates(IDENTITY)[[*IDENTITY, "reason"]].sort_values(IDENTITY),
        _versions(tidy["versions"]),
        dict(runs[["dataset", "digest"]].dropna().sort_values(["dataset", "digest"]).to_numpy()),
    )


def _damaged(path: Path, fault: str) -> InputError:
    return InputError(f"{path} {fault}; delete it and run python -m benchmarks {path.stem} again.")


def _tidy(path: Path) -> pd.DataFrame:
    try:
        tidy = pd.read_parquet(path, engine="pyarrow")
    except (OSError, ValueError) as error:  # ArrowInvalid is a ValueError
        reason = str(error).partition("\n")[0].rstrip(".")
        raise _damaged(path, f"is not a readable Parquet file ({reason})") from None
    missing = [name for name in COLUMNS if name not in tidy.columns]
    if missing:
        raise _damaged(path, f"is no frame of a study: it lacks {', '.join(missing)}")
    try:
        tidy[NUMBERS] = tidy[NUMBERS].astype(float)
    except (TypeError, ValueError):
        raise _damaged(path, f"has text where numbers belong ({', '.join(NUMBERS)})") from None
    tidy[TEXTS] = tidy[TEXTS].astype(object).where(tidy[TEXTS].notna(), "").astype(str)
    return tidy


def _versions(column: pd.Series) -> dict[str, str]:
    found: dict[str, set[str]] = {}
    for text in sorted(set(column.dropna())):
        for name, value in json.loads(text or "{}").items():
            found.setdefault(name, set()).add(str(value))
    return {name: " or ".join(sorted(values)) for name, values in found.items()}


def summarise(study: Study) -> pd.DataFrame:
    """Mean, standard deviation and number of seeds of each metric, and the published figures.

    By the paper's protocol the parameters of a method on a data set are those of the best mean. Without
    classes nobody can choose, so parameters that differ set methods apart.

    Parameters
    ----------
    study : Study
        From `read`.

    Returns
    -------
    DataFrame
        part, dataset, n, protocol ("published" for the figures of the papers), method, x (the swept
        parameter, or NaN), metric, mean, sd (ddof = 1) and count; and numbers to sort by: order of the
        methods and rank of the protocols. The order of the rows does not depend on the frame's.
    """
    view, values = study.view, study.values.copy()
    split = [
        _split(text, view.sweeps.get(part, "")) for part, text in values[["part", "parameters"]].to_numpy()
    ]
    values["x"], values["rest"] = [x for x, _ in split], [rest for _, rest in split]
    kept = [
        _best(group, view) if group["protocol"].iloc[0] == PAPER else _set_apart(group)
        for _, group in values.groupby(GROUP, dropna=False)
    ]
    if not kept:
        return pd.DataFrame(columns=[*GROUP, "metric", "mean", "sd", "count"])
    groups = pd.concat(kept).groupby([*GROUP, "metric"], dropna=False)["value"]
    table = groups.agg(mean="mean", sd="std", count="count").reset_index()
    table = pd.concat([table, _published(table, view)], ignore_index=True)
    order, ranks = in_order(table["method"], view), dict(zip(PROTOCOLS, range(3), strict=True))
    table["order"] = table["method"].map(order.index)
    table["rank"] = table["protocol"].map(ranks).fillna(len(ranks))
    keys = ["part", "n", "dataset", "order", "rank", "protocol", "x", "metric"]
    return table.sort_values(keys, ignore_index=True)


def _split(text: str, swept: str) -> tuple[float, str]:
    """The value of the swept parameter, and the other parameters."""
    given = json.loads(text or "{}")
    value = given.pop(swept, None)
    return float(value) if isinstance(value, int | float) else np.nan, json.dumps(given, sort_keys=True)


def _best(group: pd.DataFrame, view: View) -> pd.DataFrame:
    metric = primary(group["metric"], view)
    means = group[group["metric"] == metric].groupby("rest")["value"].mean()
    return group[group["rest"] == (means.idxmax() if direction(metric) > 0 else means.idxmin())]


def _set_apart(group: pd.DataFrame) -> pd.DataFrame:
    given = {text: json.loads(text) for text in group["rest"].unique()}
    names = sorted({name for values in given.values() for name in values})
    varying = [name for name in names if len({repr(values.get(name)) for values in given.values()}) > 1]
    suffixes = {
        text: "".join(f", {name}={values[name]}" for name in varying if name in values)
        for text, values in given.items()
    }
    return group.assign(method=group["method"] + group["rest"].map(suffixes))


def _published(table: pd.DataFrame, view: View) -> pd.DataFrame:
    """The published figures of what was measured, as rows of a protocol of their own."""
    keys = ["dataset", "method", "metric"]
    printed = published()
    printed = printed[printed["paper"].isin(view.papers)].drop_duplicates(keys)
    measured = table[["part", "n", *keys]].drop_duplicates()
    found = measured.merge(printed[[*keys, "value"]], on=keys).rename(columns={"value": "mean"})
    return found.assign(protocol=PUBLISHED)


def is_share(metric: str) -> bool:
    """Whether a metric is shown in per cent."""
    return not SHARES.isdisjoint(metric.split("_"))


def direction(metric: str) -> int:
    """-1 where less is better, 1 where more is, 0 where neither can be said."""
    words = set(metric.split("_"))
    return bool(words & HIGHER) - bool(words & LOWER)


def primary(metrics: Iterable[str], view: View) -> str:
    """The metric that figures show: the view's, else the first preferred, else the first, else seconds."""
    found = sorted({*metrics} - {*RESOURCES})
    return next((name for name in (view.metric, *PREFERRED) if name in found), (*found, "seconds")[0])


def is_ours(method: str, view: View) -> bool:
    """Whether a view names a method; parameters after the name make no difference."""
    base, _, rest = method.partition(", ")
    return base in view.ours and (not rest or "=" in rest)


def in_order(methods: Iterable[str], view: View) -> list[str]:
    """Each method once: ours as the view lists them, then others, k-means and coin flips at the end."""

    def key(method: str) -> tuple[int, list[Any]]:
        # Numbers within a name are compared as numbers.
        words = re.split(r"(\d+(?:\.\d+)?)", method)
        name = [float(word) if place % 2 else word for place, word in enumerate(words)]
        base = method.partition(", ")[0]
        ranks = [*view.ours, "", *YARDSTICKS]
        return ranks.index(base if base in YARDSTICKS or is_ours(method, view) else ""), name

    return sorted(set(methods), key=key)


def row_names(rows: pd.DataFrame) -> list[str]:
    """Data sets, with their numbers of rows where one has several."""
    several = rows.groupby("dataset")["n"].nunique() > 1
    return [
        f"{dataset}, {n:,.0f} rows" if several[dataset] and pd.notna(n) else str(dataset)
        for dataset, n in zip(rows["dataset"], rows["n"], strict=True)
    ]


def slopes(rows: pd.DataFrame, fewest: int = 3) -> pd.DataFrame:
    """Fit straight lines to the logarithms of the means against those of the numbers of rows.

    Parameters
    ----------
    rows : DataFrame
        Rows of one metric, from `summarise`.
    fewest : int, default=3
        Methods with fewer sizes are left out: two points leave nothing for an interval.

    Returns
    -------
    DataFrame
        method, protocol, slope, the ends low and high of its 95 % interval, and intercept (natural
        logarithm).
    """
    found = []
    for (method, protocol), part in rows.groupby(["method", "protocol"], sort=False):
        part = part[(part["mean"] > 0) & part["n"].notna()]
        if part["n"].nunique() < fewest:
            continue
        line, centre = log_slope(part["n"], part["mean"]), np.log(part[["n", "mean"]]).mean()
        # The line goes through the centre of the points.
        found.append((method, protocol, *line, centre["mean"] - line.value * centre["n"]))
    return pd.DataFrame(found, columns=["method", "protocol", "slope", "low", "high", "intercept"])
