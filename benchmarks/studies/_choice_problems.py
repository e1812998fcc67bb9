"""The problems of the study ``choice`` by kind: their rows, classes and scaling."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from benchmarks.halves import TUNING, half_of, whole_of
from benchmarks.protocol import Data, draw, load_once
from benchmarks.run import Options
from benchmarks.studies._sets import SHAPE_ROWS, n_clusters_of, rows_of_set
from mmcnb.datasets import SHAPES

GEOMETRY, TWO, MANY, TEXT, FEW_ROWS = KINDS = (
    "shapes",
    "two classes",
    "many classes",
    "text",
    "cells, expression, images",
)
TABLES = (
    "adult",
    "australian",
    "breast",
    "clean1",
    "echocardiogram",
    "german",
    "haberman",
    "heart",
    "house-votes",
    "ionosphere",
    "liver",
    "magic",
    "ringnorm",
    "satellite-1v2",
    "spambase",
    "spectf",
    "svmguide1",
    "waveform-1v2",
    "wdbc",
)
PAIRED = ("letter", "optdigits", "mnist")
# Largest number of pairs of one data set.
MOST_PAIRS = 10
PAIRS_WITH_PEERS = 3
DIGITS = ("mnist", "optdigits", "pendigits", "usps")
MANY_CLASSES = (
    "dermatology",
    "faults",
    "iris",
    "letter",
    "new-thyroid",
    "satellite",
    "segment",
    "shuttle-test",
    "vowel",
    "waveform",
    *DIGITS,
)
TEXTS = (
    "agnews",
    "tweet",
    "search-snippets",
    "stackoverflow",
    "cnae9",
    "agnews-embedded",
    "tweet-embedded",
    "search-snippets-embedded",
)
CELLS = "mecs"
OF_LENGTH_1 = "cnae9"
COMPONENTS = 50
FEW_AS_PUBLISHED = ("lymphoma", "nci9", "leukemia", "coil20", "yale", "pixraw10p")
FEW = (CELLS, "allaml", "glioma", *FEW_AS_PUBLISHED)
AS_PUBLISHED = ("adult", "fashion-mnist", *DIGITS, *TEXTS, *FEW_AS_PUBLISHED)
SMOKE = ("two-moons", "wdbc", "optdigits 4v5", "letter", "search-snippets-embedded")
MOST_ROWS = 10_000


class Problem(NamedTuple):
    """Rows to cluster without their classes.

    Parameters
    ----------
    name : str
        Name in the tables.
    source : str
        Data set or shape.
    kind : str
        One of `KINDS`.
    classes : sequence of int, default=()
        Positions of two classes among the classes of the data set; if empty, all
        classes are used.
    with_peers : bool, default=True
        Whether peers are fitted to the rows.
    """

    name: str
    source: str
    kind: str
    classes: Sequence[int] = ()
    with_peers: bool = True

    @property
    def half(self) -> str:
        """The half of the data set."""
        return half_of(self.source)

    @property
    def whole(self) -> str:
        """The data set. All problems of a data set together have the weight of one data set."""
        return whole_of(self.source)

    @property
    def n_clusters(self) -> int:
        """Number of classes."""
        return len(self.classes) or n_clusters_of(self.source)


def problems() -> list[Problem]:
    """Return all problems; problems of the same data set are adjacent.

    Examples
    --------
    >>> from benchmarks.studies._choice_problems import problems
    >>> len({one.name for one in problems()}) == len(problems()) >= 100
    True
    """
    sources = {
        GEOMETRY: tuple(SHAPES),
        TWO: TABLES,
        MANY: MANY_CLASSES,
        TEXT: TEXTS,
        FEW_ROWS: FEW,
    }
    found = [
        Problem(name, name, kind) for kind, names in sources.items() for name in names
    ]
    found += [pair for source in PAIRED for pair in _pairs_of(source)]
    return sorted(found, key=lambda one: (KINDS.index(one.kind), one.source))


def _pairs_of(source: str) -> Iterator[Problem]:
    """Return ten random pairs of classes; peers are fitted only to the first few."""
    pairs = list(combinations(range(n_clusters_of(source)), 2))
    drawn = np.random.RandomState(0).permutation(len(pairs))[:MOST_PAIRS]
    for place, number in enumerate(drawn):
        a, b = pairs[number]
        yield Problem(
            f"{source} {a}v{b}", source, TWO, (a, b), place < PAIRS_WITH_PEERS
        )


def problems_of(options: Options) -> list[Problem]:
    """Return the problems of a scale: all, the tuning half, or a few of that half."""
    quick = [one for one in problems() if one.half == TUNING]
    return options.pick(problems(), quick, [one for one in quick if one.name in SMOKE])


@lru_cache(maxsize=2)
def rows_of(problem: Problem, most: int, seed: int) -> Data:
    """Return the rows of a problem, scaled, and its classes from 0.

    A shape is generated again for each seed.
    """
    if problem.kind == GEOMETRY:
        return rows_of_set(problem.source, min(most, SHAPE_ROWS), seed)
    whole = load_once(problem.source, None)
    found = draw(whole, np.unique(whole.y)[list(problem.classes)].tolist(), most)
    return Data(
        problem.name,
        scaled(problem.source, found.X),
        np.unique(found.y, return_inverse=True)[1],
    )


def scaled(source: str, X: Any) -> Any:
    """Return rows as the publisher of a data set compares them.

    The rows are unchanged, divided by their lengths, or have standardised columns.
    """
    from sklearn.decomposition import PCA
    from sklearn.preprocessing import StandardScaler, normalize

    if source == CELLS:
        return PCA(min(COMPONENTS, *X.shape), random_state=0).fit_transform(X)
    if source == OF_LENGTH_1:
        return normalize(X)
    return X if source in AS_PUBLISHED else StandardScaler().fit_transform(X)
