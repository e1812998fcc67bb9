"""What the page knows of each study beforehand: title, question, methods to speak of, kind of figure."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import benchmarks

KMEANS, COINS = "k-means", "coin flips"
PAPER, FREE = "paper", "label-free"
PROTOCOLS = {PAPER: "paper's protocol (chosen by the classes)", FREE: "label-free (what a user gets)"}
PREFERRED = ("balanced_error", "error", "accuracy", "ari", "rand")
HIGHER = {"accuracy", "ari", "rand", "nmi", "auc", "recall", "precision", "f1", "agreement", "speedup"}
LOWER = {"error", "objective", "seconds", "ratio", "mib"}
OTHERS = (
    KMEANS,
    COINS,
    "normalised cut",
    "MiniBatchKMeans",
    "BisectingKMeans",
    "SpectralClustering",
    "HDBSCAN",
    "spectral",
    "Nystroem",
    "Nyström",
    "SVC",
    "LinearSVC",
    "Dask",
    "bare",
)


class About(NamedTuple):
    """What is known of a study.

    Parameters
    ----------
    title : str
        Heading of its section.
    ours : tuple of str, default=()
        The methods that the reading speaks of; none are all that are no peer.
    papers : tuple of str, default=()
        Names of its papers in the published figures.
    metric : str, default=""
        The metric to show where it is there.
    sweep : str, default=""
        A parameter whose values make the horizontal axis.
    curves : mapping of str to str, default={}
        The same for parts of the study.
    by_rows : bool, default=False
        Whether all data sets are sizes of one, so that rows make the horizontal axis.
    """

    title: str
    ours: tuple[str, ...] = ()
    papers: tuple[str, ...] = ()
    metric: str = ""
    sweep: str = ""
    curves: Mapping[str, str] = {}
    by_rows: bool = False

    def of_part(self, part: str) -> About:
        """What is known of a part."""
        return self._replace(sweep=self.curves.get(part, self.sweep))


ABOUT = {
    "small": About("Small data sets", ("SKMMC", "SKMMCv2"), ("SKMMC",)),
    "mnist": About("MNIST pairs", ("SKMMC",), ("SKMMC",)),
    "adult": About("Adult", ("SKMMC",), ("SKMMC",), by_rows=True),
    "usps": About("Extended USPS", ("SKMMC",), ("SKMMC",), by_rows=True),
    "eta": About("Precision of the cutting planes", ("SKMMC",), sweep="eta"),
    "evolutionary": About("Evolution of labels", ("EvoMMC", "FastEvoMMC"), ("EvoMMC",), "error"),
    "rls": About(
        "Least squares clusters", ("UMC-RLS", "mixed shaking", "UnsupervisedRLS"), ("UMC-RLS",), "ari"
    ),
    "mkc": About("Multiple kernels", ("MKC", "MKC of a sample"), ("MKC", "MKC thesis")),
    "scm": About(
        "Support cluster machine",
        ("SCM",),
        metric="average_precision",
        curves={"spaces": "clusters", "rounds": "rounds"},
    ),
    "engine": About("Engine"),
    "peers": About("Peers", metric="ari"),
}


def about(name: str) -> About:
    """What is known of a study; of another, its name alone."""
    return ABOUT.get(name) or About(name.replace("-", " ").replace("_", " ").capitalize())


def told(name: str) -> tuple[str, str]:
    """What a study asks and how it measures: the first line and the rest of its module's text.

    Examples
    --------
    >>> from benchmarks.report._studies import told
    >>> "MNIST" in told("mnist")[0], told("no-such-study")
    (True, ('', ''))
    """
    path = Path(benchmarks.__file__).with_name(f"{name}.py")
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) if path.exists() else None
    question, _, how = (text or "").partition("\n")
    return question, how.strip()


def said(protocol: str) -> str:
    """Name of a protocol for people."""
    return PROTOCOLS.get(protocol, protocol)


def is_ours(method: str, study: About) -> bool:
    """Whether the reading speaks of a method; a variant with a name of its own is no longer the method."""
    base, _, rest = method.partition(", ")
    if study.ours:
        return base in study.ours and (not rest or "=" in rest)
    return not base.startswith(OTHERS)


def in_order(methods: Iterable[str], study: About) -> list[str]:
    """Each method once: ours as the study lists them, then others, k-means and coin flips at the end."""

    def key(method: str) -> tuple[int, int, list[str | float]]:
        base = method.partition(", ")[0]
        # Numbers within a name are compared as numbers.
        parts = re.split(r"(\d+(?:\.\d+)?)", method)
        name: list[str | float] = [float(part) if place % 2 else part for place, part in enumerate(parts)]
        if base in (KMEANS, COINS):
            return (2, (KMEANS, COINS).index(base), name)
        if is_ours(method, study):
            return (0, study.ours.index(base) if base in study.ours else 0, name)
        return (1, 0, name)

    return sorted(set(methods), key=key)


def direction(metric: str) -> int:
    """-1 where less is better, 1 where more is, 0 where neither can be said."""
    words = set(metric.split("_"))
    return bool(words & HIGHER) - bool(words & LOWER)


def primary(metrics: list[str], study: About) -> str:
    """The metric that figures show: the study's, or the first preferred one, or the first; else seconds."""
    wanted = (study.metric, *PREFERRED)
    return next((name for name in wanted if name in metrics), metrics[0] if metrics else "seconds")
