"""Models whose checksums are right and whose contents are not.

**Promised.** A file with another number, array or field somewhere is refused by one
sentence that names it. Or its answers are those of some model: labels are clusters or
noise, figures are finite, and tables and pages are whole. There is no traceback, no
warning of NumPy and no crash. Loading takes no more memory than a few copies of the
file.

A try changes one or two places of a model of some form, loads it and asks it a few
questions.
"""

import copy
import json
import math
import random
import tracemalloc
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import scipy.cluster.hierarchy
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

import mmcnb

# Internal: the peak is measured as the library measures it.
from mmcnb._machine import peak_memory
from mmcnb.features.model import read_model, write_model
from tests.campaigns.hostile import (
    ARRAY_CHANGES,
    MOST_GROWTH,
    answer_of,
    peak_from_here,
    spoil,
)

TRIES = 5000
CI_TRIES = 50
SECONDS = 90  # the first try of a process fits models of all forms
# bytes that loading may take: those of the file so often, and some
COPIES = 20
SPARE = 8 * 2**20


class Form(NamedTuple):
    """A form of models: the contents of one, its size, and rows that it labels."""

    header: dict[str, Any]
    arrays: dict[str, np.ndarray]
    n_bytes: int
    rows: Any


# -- models of every form --------------------------------------------------------------


def rows(n: int = 240, d: int = 4, k: int = 2, dtype: str = "float64") -> np.ndarray:
    """Rows of plain groups."""
    around = np.random.default_rng(0).normal(size=(n, d))
    groups = np.arange(k).repeat(-(-n // k))[:n, None]
    return (around + 7 * groups * (np.arange(d) % 2 + 1)).astype(dtype)


def directions() -> scipy.sparse.csr_array:
    """Sparse rows of two groups, each with columns of its own."""
    wide = np.random.default_rng(0).poisson(0.4, (240, 40)).astype(float)
    wide[::2, :20] *= 4
    wide[1::2, 20:] *= 4
    return scipy.sparse.csr_array(wide)


def table() -> Any:
    """Numbers, flags, texts with gaps, and dates, which take no part."""
    import pandas as pd

    X = rows()
    side = np.arange(240) // 120
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "flag": side == 1})
    frame["text"] = np.where(side == 1, "yes", "no")
    frame.loc[::9, "text"] = None
    return frame.assign(
        day=pd.Timestamp("2024-03-01") + pd.to_timedelta(400 * side + X[:, 2], unit="D")
    )


def in_cells() -> np.ndarray:
    """More rows than are searched without cells."""
    return rows(4400, 3)


def graph(**given: Any) -> Any:
    """The default, by the vote of its nodes."""
    return mmcnb.MaximumMarginClustering(
        kernel="graph", random_state=0, n_jobs=1, **given
    )


def updated() -> Any:
    """A model that has taken in a third group."""
    X = rows(360, 4, 3)
    return graph(noise="auto").fit(X[:240]).update(X[200:])


def numbered_like() -> Any:
    """A model with the numbers of one of three clusters, of which one is free."""
    X = rows(360, 4, 3)
    earlier = graph().fit(X)
    return graph().fit(X[120:], like=earlier)


OWN = {"random_state": 0, "n_jobs": 1, "n_init": 1}
FORMS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "graph": lambda: (graph(noise="auto"), rows()),
    "scaled": lambda: (
        graph(scale={0: "log", 1: "standard"}),
        np.abs(rows(dtype="float32")),
    ),
    "axes": lambda: (graph(n_clusters=2), rows(d=60, dtype="float32")),
    "cells": lambda: (graph(n_clusters=2, n_nodes=5000), in_cells()),
    "directions": lambda: (graph(n_clusters=2, metric="cosine"), directions()),
    "unit rows": lambda: (
        graph(n_clusters=2, metric="cosine", noise=0.05),
        directions().toarray(),
    ),
    "table": lambda: (graph(), table()),
    "margin": lambda: (
        mmcnb.MaximumMarginClustering(
            2, kernel="rbf", noise="auto", random_state=0, n_jobs=1
        ),
        rows(),
    ),
    "equal rows": lambda: (graph(), np.ones((50, 3))),
    "updated": lambda: (updated(), None),
    "numbered like": lambda: (numbered_like(), None),
    "linear": lambda: (mmcnb.CPMMC(**OWN), rows()),
    "kernel": lambda: (
        mmcnb.SparseKernelMMC(n_landmarks=9, scale="standard", **OWN),
        rows(dtype="float32"),
    ),
    "polynomial": lambda: (
        mmcnb.SparseKernelMMC(n_landmarks=9, kernel="poly", degree=2, **OWN),
        rows(dtype="float32"),
    ),
    "sparse basis": lambda: (mmcnb.SparseKernelMMC(n_landmarks=9, **OWN), wide()),
    "exact kernel": lambda: (mmcnb.KernelCPMMC(**OWN), rows(60)),
    "several clusters": lambda: (
        mmcnb.CrammerSingerMMC(3, n_landmarks=9, **OWN),
        rows(360, 4, 3),
    ),
    "least squares": lambda: (
        mmcnb.UnsupervisedRLS(3, n_landmarks=9, **OWN),
        rows(360, 4, 3),
    ),
    "evolution": lambda: (
        mmcnb.EvolutionaryMMC(n_landmarks=9, random_state=0, n_jobs=1),
        rows(),
    ),
    "k-means": lambda: (mmcnb.KernelKMeans(3, n_landmarks=9, **OWN), rows(360, 4, 3)),
    "several kernels": lambda: (
        mmcnb.MultipleKernelClustering(2, kernels=["linear", "rbf", "poly"], **OWN),
        rows(),
    ),
    "kernels of columns": lambda: (mmcnb.MultipleKernelClustering(2, **OWN), rows()),
}


def wide() -> scipy.sparse.csr_array:
    """Sparse rows of so many columns that a basis is sparse too."""
    few = directions()
    return scipy.sparse.csr_array(
        (few.data, few.indices * 1000, few.indptr), (240, 40_000)
    )


@cache
def forms() -> dict[str, Form]:
    """A model of each form, fitted once in a process."""
    return {name: fitted(name) for name in FORMS}


def fitted(name: str) -> Form:
    """A model of a form, which answers every question."""
    estimator, X = FORMS[name]()
    with warnings.catch_warnings(), TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        if X is None:
            X = rows(360, 4, 3)
        else:
            estimator.fit(X)
        path = Path(folder, "model")
        estimator.save(path)
        found = Form(*read_model(path), path.stat().st_size, X)
        for one, question in QUESTIONS.items():
            refused = answer_of(
                lambda question=question: question(mmcnb.load(path), X, Path(folder))
            )
            assert refused != "refused" or one in ("update", "update far", "like"), (
                f"{name} refuses {one}"
            )
    return found


# -- changes ---------------------------------------------------------------------------


ODD_FLOATS = (
    math.nan,
    math.inf,
    -math.inf,
    0.0,
    -1.0,
    1e308,
    -1e308,
    1e-310,
    1e30,
    3e38,
    0.5,
)
ODD_NUMBERS = (-1, 0, 1, 2, 977, 2**31 - 1, 2**31, 2**62, -(2**31), -(2**63), 2**63 - 1)


def entry(draw: random.Random, arrays: dict[str, np.ndarray]) -> str:
    """Another number at one place of an array, or in one of its rows."""
    name = draw.choice([name for name in sorted(arrays) if arrays[name].size])
    array = arrays[name] = arrays[name].copy()
    place = tuple(draw.randrange(size) for size in array.shape)
    if draw.random() < 0.2:
        place = place[:-1]
    if array.dtype.kind == "f":
        value: Any = draw.choice(ODD_FLOATS)
    else:  # also numbers that are just in or just out of range
        sizes = [size for other in arrays.values() for size in other.shape]
        value = draw.choice(
            (*ODD_NUMBERS, *(draw.choice(sizes) + beyond for beyond in (-1, 0, 1)))
        )
    array[place] = np.array([value]).astype(array.dtype)[0]
    return f"{name}{list(place)} is {value}"


def whole(draw: random.Random, arrays: dict[str, np.ndarray]) -> str:
    """All numbers of an array, its shape or its type."""
    name = draw.choice(sorted(arrays))
    change = draw.choice(list(ARRAY_CHANGES))
    arrays[name] = np.ascontiguousarray(ARRAY_CHANGES[change](arrays[name]))
    return f"{name}: {change}"


def order(draw: random.Random, arrays: dict[str, np.ndarray]) -> str:
    """The numbers of an array in another order or shape."""
    name = draw.choice([name for name in sorted(arrays) if arrays[name].ndim])
    array = arrays[name]
    changes: dict[str, Callable[[], np.ndarray]] = {
        "reversed": lambda: array[::-1],
        "transposed": lambda: array.T,
        "equal": lambda: np.full_like(array, array.flat[0]) if array.size else array,
        "shuffled": lambda: np.random.default_rng(draw.randrange(2**32)).permutation(
            array
        ),
        "less": lambda: array[..., :-1],
        "more": lambda: np.append(array, array[..., -1:], axis=-1),
        "first": lambda: array[:1],
        "by columns": lambda: np.asfortranarray(array),
        "other width": lambda: array.astype(
            {4: f"{array.dtype.kind}8"}.get(array.itemsize, f"{array.dtype.kind}4")
        ),
    }
    change = draw.choice(list(changes))
    arrays[name] = changes[change]()
    return f"{name}: {change}"


def exchanged(draw: random.Random, arrays: dict[str, np.ndarray]) -> str:
    """An array that another one is, one of another model, or none."""
    name = draw.choice(sorted(arrays))
    if draw.random() < 0.3:
        del arrays[name]
        return f"no {name}"
    others = (
        arrays if draw.random() < 0.5 else draw.choice(list(forms().values())).arrays
    )
    other = draw.choice(sorted(others))
    arrays[name if draw.random() < 0.7 else other] = others[other]
    return f"{name}: {other}"


def changed(
    draw: random.Random, found: Form
) -> tuple[str, dict[str, Any], dict[str, np.ndarray]]:
    """What was changed, and header and arrays with one or two changes."""
    header = copy.deepcopy(found.header)
    arrays = dict(found.arrays)
    told = []
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(draw.choice((1, 1, 1, 2))):
            change = draw.choice(
                (entry, entry, entry, whole, order, exchanged, None, None, None)
            )
            told.append(spoil(draw, header) if change is None else change(draw, arrays))
    if draw.random() < 0.9:
        header.pop("arrays", None)  # the list of names is right again
    return "; ".join(told), header, arrays


# -- questions -------------------------------------------------------------------------


def finite(values: Any, what: str) -> np.ndarray:
    """Numbers, all of which are finite."""
    values = np.asarray(values, np.float64)
    assert np.isfinite(values).all(), f"{what} is not finite"
    return values


def labels_in_range(labels: np.ndarray, model: Any, n: int) -> None:
    """Labels of rows are clusters of the model, or noise."""
    graph = model.model_.graph
    offset = model.model_.rule.offset
    least = -1 if graph is not None and graph.thresholds is not None else 0
    assert labels.shape == (n,), "labels of other rows"
    assert labels.dtype == np.int32, f"labels are {labels.dtype}"
    assert least <= labels.min() <= labels.max() < max(2, np.size(offset)), (
        "labels of no cluster"
    )


def predict(model: Any, X: Any, folder: Path) -> None:
    labels_in_range(model.predict(X), model, X.shape[0])


def decide(model: Any, X: Any, folder: Path) -> None:
    finite(model.decision_function(X), "decision_function")
    frame = model.to_frame(X)
    assert (finite(frame["margin"], "margin") >= 0).all(), "a negative margin"
    if hasattr(model, "transform"):
        finite(model.transform(X), "transform")


def probabilities(model: Any, X: Any, folder: Path) -> None:
    if not hasattr(model, "predict_proba"):
        return
    found = finite(model.predict_proba(X), "predict_proba")
    assert (found >= 0).all(), "a negative probability"
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-6)


def outliers(model: Any, X: Any, folder: Path) -> None:
    if has_nodes(model):
        finite(model.score_outliers(X), "score_outliers")


def tree(model: Any, X: Any, folder: Path) -> None:
    if not has_nodes(model):
        return
    linkage = model.linkage_
    pieces = model.piece_of_node_
    c = linkage.shape[0] + 1
    assert c == 1 or scipy.cluster.hierarchy.is_valid_linkage(linkage), (
        "linkage_ is no linkage"
    )
    assert 0 <= pieces.min() <= pieces.max() < c, "piece_of_node_ is out of range"
    for k in {1, min(2, c), c}:
        labels = model.labels_at(X, k)
        assert -1 <= labels.min() <= labels.max() < k, f"labels_at {k} out of range"


def layers(model: Any, X: Any, folder: Path) -> None:
    if not has_nodes(model):
        return
    told = model.layers_
    for layer in range(min(len(told), 3)):
        labels = model.predict(X, layer=layer)
        assert -1 <= labels.min() <= labels.max() < X.shape[0], "labels of no layer"
    model.predict(X, folder / "labels.csv", layer="all")
    (folder / "labels.csv").unlink()


def explain(model: Any, X: Any, folder: Path) -> None:
    told = model.explain(X)
    json.dumps(told.to_dict(), allow_nan=False, default=int)
    finite(told.clusters["share"], "share")
    assert str(told), "no sentence"


def report(model: Any, X: Any, folder: Path) -> None:
    model.write_report(X, folder / "page.html")
    assert (folder / "page.html").read_text(encoding="utf-8").endswith("</html>\n"), (
        "a page that is cut"
    )
    (folder / "page.html").unlink()


def update(model: Any, X: Any, folder: Path) -> None:
    if hasattr(model, "update"):
        model.update(X)
        labels_in_range(model.labels_, model, X.shape[0])
        finite(model.report_["sizes"], "sizes")
        again(model, X, folder)


def update_far(model: Any, X: Any, folder: Path) -> None:
    far = X if hasattr(X, "columns") or scipy.sparse.issparse(X) else X[:100] + 40.0
    update(model, far, folder)


def like(model: Any, X: Any, folder: Path) -> None:
    other = graph().fit(X, like=model)
    labels_in_range(other.labels_, other, X.shape[0])
    finite(other.report_["sizes"], "sizes")


def attributes(model: Any, X: Any, folder: Path) -> None:
    finite(model.objective_, "objective_")
    for name in ("coef_", "intercept_", "kernel_weights_", "cluster_sizes_", "rho_"):
        if hasattr(model, name):
            finite(getattr(model, name), name)
    assert model._repr_html_(), "no page of a notebook"
    assert repr(model), "no text"


def again(model: Any, X: Any, folder: Path) -> None:
    """Saved and loaded once more it gives the same labels."""
    model.save(folder / "again")
    other = mmcnb.load(folder / "again")
    assert other.predict(X).tobytes() == model.predict(X).tobytes(), (
        "other labels after save and load"
    )


def has_nodes(model: Any) -> bool:
    """Whether a model has the nodes of a graph."""
    return model.model_.graph is not None and hasattr(model, "labels_at")


QUESTIONS: dict[str, Callable[[Any, Any, Path], None]] = {
    "predict": predict,
    "decide": decide,
    "probabilities": probabilities,
    "outliers": outliers,
    "tree": tree,
    "layers": layers,
    "explain": explain,
    "attributes": attributes,
    "again": again,
    "update": update,
    "update far": update_far,
    "like": like,
    "report": report,
}


# -- a try -----------------------------------------------------------------------------


def attempt(seed: int, folder: Path) -> dict[str, Any]:
    """Change a model, load it, ask a few questions, and judge the answers."""
    draw = random.Random(seed)
    name = list(FORMS)[seed % len(FORMS)]
    found = forms()[name]
    what, header, arrays = changed(draw, found)
    asked = [
        "predict",
        *draw.sample([*QUESTIONS][1:-1], 4),
        *(["report"] if draw.random() < 0.1 else []),
    ]
    path = folder / "model"
    facts = {"form": name, "what": what, "asked": " ".join(asked)}
    write_model(path, header, arrays)
    before = peak_from_here()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for told in (mmcnb.ClusterWarning, ConvergenceWarning):
            warnings.simplefilter("ignore", told)
        try:
            loaded = answer_of(lambda: loading(path, found.n_bytes))
            answers = [loaded] if loaded == "refused" else []
            for question in asked if loaded != "refused" else ():
                ask = partial(QUESTIONS[question], mmcnb.load(path), found.rows, folder)
                answers.append(answer_of(ask))
        except Exception as error:
            error.add_note(str(facts))
            raise
    growth = peak_memory() - before
    assert growth < MOST_GROWTH, f"{facts}: memory grew by {growth >> 20} MiB"
    answer = (
        "refused"
        if loaded == "refused"
        else "refused later"
        if "refused" in answers
        else "answered"
    )
    return facts | {"answer": answer}


def loading(path: Path, n_bytes: int) -> None:
    """Load a model; the peak of what is allocated is in proportion to the file."""
    tracemalloc.start()
    try:
        mmcnb.load(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < COPIES * n_bytes + SPARE, (
        f"loading took {peak:,} bytes for a file of {n_bytes:,}"
    )
