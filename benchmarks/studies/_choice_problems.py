"""The problems of the study of choices: pairs, tables, shapes, and many clusters of even and uneven sizes."""

import base64
import zlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from benchmarks.halves import TUNING, half_of
from benchmarks.methods import FRONT_DOOR, KMEANS
from benchmarks.protocol import Data, NoData, load_once
from benchmarks.run import Options
from benchmarks.studies._sets import rows_of_set
from mmcnb.synthetic import SHAPES

LABELLED = f"{FRONT_DOOR}, 1 % of labels"
PEERS = (KMEANS, FRONT_DOOR, LABELLED)  # which no rule picks
PAIRS, TABLES, MANY, FEW_ROWS, GEOMETRY = "pairs", "tables", "many clusters", "few rows", "shapes"
DOMAINS = (PAIRS, TABLES, MANY, FEW_ROWS, GEOMETRY)
TWO_CLASSES = (
    *(
        "adult",
        "echocardiogram",
        "heart",
        "liver",
        "ionosphere",
        "breast",
        "german",
        "waveform-1v2",
        "spambase",
    ),
    *("ringnorm", "spectf", "haberman", "house-votes", "clean1", "australian", "satellite-1v2", "kr-vs-kp"),
    *("wdbc", "magic"),
)
DIGITS = ("mnist", "optdigits", "pendigits", "usps")
PAIRS_OF = {**dict.fromkeys(DIGITS, 15), "segment": 12, "waveform": 3}
CLUSTERS = (3, 4, 5, 6, 8, 10)
CLUSTERS_OF = {**dict.fromkeys(DIGITS, CLUSTERS), "segment": (3, 4, 5, 7), "waveform": (3,), "iris": (3,)}
PAIR_ROWS, TABLE_ROWS, MANY_ROWS, SMALL_ROWS, SHAPE_ROWS = 1500, 3000, 3000, 400, 1000


class Problem(NamedTuple):
    """Rows to cluster without their classes.

    Parameters
    ----------
    name : str
        For the tables.
    source : str
        Data set or shape.
    domain : str
        One of `DOMAINS`.
    rows : int
        Most rows, drawn at random.
    classes : tuple of int, default=()
        Places of the classes among those of the set; all if there is none.
    uneven : bool, default=False
        Whether the classes are drawn in the proportions 1:2:...:k.
    """

    name: str
    source: str
    domain: str
    rows: int
    classes: tuple[int, ...] = ()
    uneven: bool = False

    @property
    def half(self) -> str:
        """The half of its set."""
        return half_of(self.source)


def problems() -> list[Problem]:
    """All problems, those of one set together.

    Examples
    --------
    >>> from benchmarks.studies._choice_problems import problems
    >>> len({one.name for one in problems()}) == len(problems()) >= 150
    True
    """
    sources = dict.fromkeys((*PAIRS_OF, *CLUSTERS_OF, *TWO_CLASSES))
    return [one for source in sources for one in _of_set(source)] + [
        Problem(name, name, GEOMETRY, SHAPE_ROWS) for name in SHAPES
    ]


def _of_set(source: str) -> Iterator[Problem]:
    rng = np.random.RandomState(0)
    known = max(CLUSTERS_OF.get(source, (2,)))
    pairs = list(combinations(range(known), 2))
    for place in np.sort(rng.permutation(len(pairs))[: PAIRS_OF.get(source, 0)]):
        a, b = pairs[place]
        yield Problem(f"{source} {a}v{b}", source, PAIRS, PAIR_ROWS, (a, b))
    for k in CLUSTERS_OF.get(source, ()):
        classes = tuple(sorted(rng.permutation(known)[:k].tolist()))
        for uneven in (False, True):
            sizes = "uneven" if uneven else "even"
            yield Problem(f"{source} {k} {sizes}", source, MANY, MANY_ROWS, classes, uneven)
    if source in DIGITS:
        for k in (2, 4, 10):
            classes = tuple(sorted(rng.permutation(known)[:k].tolist()))
            yield Problem(f"{source} {k} of {SMALL_ROWS}", source, FEW_ROWS, SMALL_ROWS, classes)
    if source in TWO_CLASSES:
        yield Problem(source, source, TABLES, TABLE_ROWS)


def of_scale(options: Options, known: Sequence[Problem], smoke: Sequence[str]) -> list[Problem]:
    """Problems of a scale, the tuning half first; quick ones are of that half, and smoke has some by name."""
    ordered = sorted(known, key=lambda one: one.half != TUNING)
    quick = [one for one in ordered if one.half == TUNING]
    return options.pick(ordered, quick, [one for one in quick if one.name in smoke])


@lru_cache(maxsize=2)
def rows_of(problem: Problem, most: int | None = None) -> Data:
    """The rows of a problem, dense and in a random order, with classes from 0."""
    if problem.domain == GEOMETRY:
        return rows_of_set(problem.source, min(problem.rows, most or problem.rows), 0)
    whole = load_once(problem.source, None)
    values, y = np.unique(whole.y, return_inverse=True)
    classes = problem.classes or tuple(range(len(values)))
    if max(classes) >= len(values):
        raise NoData(f"{problem.source} has {len(values)} classes only.")
    chosen = _drawn(y, classes, min(problem.rows, most or problem.rows), problem.uneven)
    X: Any = whole.X[chosen]
    return Data(problem.name, X.toarray() if issparse(X) else X, np.searchsorted(classes, y[chosen]))


def _drawn(y: np.ndarray, classes: tuple[int, ...], rows: int, uneven: bool) -> np.ndarray:
    """Rows of some classes: as they come, or in the proportions 1:2:...:k in a random order."""
    rng = np.random.RandomState(0)
    if not uneven:
        return rng.permutation(np.flatnonzero(np.isin(y, classes)))[:rows]
    k, counts = len(classes), np.bincount(y)[list(classes)]
    shares = rng.permutation(np.arange(1, k + 1))
    unit = min(rows / shares.sum(), (counts / shares).min())
    parts = [
        rng.permutation(np.flatnonzero(y == one))[: max(2, int(unit * share))]
        for one, share in zip(classes, shares, strict=True)
    ]
    return np.asarray(rng.permutation(np.concatenate(parts)))


def packed(labels: np.ndarray) -> str:
    """Labels below 256 as text.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.studies._choice_problems import packed, unpacked
    >>> unpacked(packed(np.array([0, 2, 1]))).tolist()
    [0, 2, 1]
    """
    return base64.b85encode(zlib.compress(labels.astype(np.uint8).tobytes(), 9)).decode()


def unpacked(text: str) -> np.ndarray:
    """The labels in a text."""
    return np.frombuffer(zlib.decompress(base64.b85decode(text)), np.uint8)
