"""Whether answers are true: small seeded problems, each estimator, and a law that its answer must keep.

What is promised (docs/architecture.md): one seed gives the same bits from any storage,
in any chunks, with any number of threads and on Dask; labels are those of the model,
and the objective follows from it. Weights count by their proportions, and whole ones as
repetitions. What is tried: rows in groups or none, with ties, equal rows and constant
columns. How it is judged: by bits where bits are promised. Elsewhere groups lie far
apart, so that rounding cannot move a row, and objectives agree to rounding. Both sides
may refuse.
"""

import copy
import itertools
import pickle
import warnings
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import dask.array
import numpy as np
import scipy.sparse
import zarr
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import mmcnb
from mmcnb.stores import create_csr_store, create_dense_store
from tests import reference

TRIES = 500
CI_TRIES = 20
SECONDS = 120

LARGE = 9000  # rows in three blocks of reduction
CONSTANTS = (0.1, 1 / 7, 3.0, 2.0**-60, 1e18, 1e300, 1e-300)

ESTIMATORS: dict[str, tuple[int, Any]] = {
    "two clusters": (2, mmcnb.MaximumMarginClustering(2)),
    "two, on the graph": (2, mmcnb.MaximumMarginClustering(2, kernel="graph")),
    "two, by the widest margin": (2, mmcnb.MaximumMarginClustering(2, kernel="rbf")),
    "three": (3, mmcnb.MaximumMarginClustering(3)),
    "three, by the widest margin": (3, mmcnb.MaximumMarginClustering(3, kernel="rbf")),
    "SparseKernelMMC": (2, mmcnb.SparseKernelMMC(gamma=0.3)),
    "KernelCPMMC": (2, mmcnb.KernelCPMMC(gamma=0.3)),
    "CPMMC": (2, mmcnb.CPMMC()),
    "CrammerSingerMMC": (3, mmcnb.CrammerSingerMMC(3)),
    "MultipleKernelClustering": (2, mmcnb.MultipleKernelClustering()),
    "UnsupervisedRLS": (3, mmcnb.UnsupervisedRLS(3)),
    "UnsupervisedRLS, equal": (2, mmcnb.UnsupervisedRLS(2, cluster_sizes="equal")),
    "EvolutionaryMMC": (2, mmcnb.EvolutionaryMMC()),
    "KernelKMeans": (3, mmcnb.KernelKMeans(3)),
}
# Few starts, drawn by row: a row given twice draws others. And sizes that are asked for
# part equal rows.
DRAWN = (
    "CrammerSingerMMC",
    "three, by the widest margin",
    "SparseKernelMMC",
    "UnsupervisedRLS",
)
SIZED = ("two, of equal sizes", "UnsupervisedRLS, equal")
STREAMED = {  # of many rows in little time
    "CPMMC": {"sample_size": 200, "n_init": 1, "C": 1.3},
    "SparseKernelMMC": {"sample_size": 200, "n_init": 1, "C": 1.3, "n_landmarks": 10},
    "UnsupervisedRLS": {"sample_size": 200, "n_init": 1, "n_landmarks": 20},
    "KernelKMeans": {"sample_size": 200, "n_init": 1, "n_landmarks": 20},
    "CrammerSingerMMC": {"sample_size": 200, "n_init": 1, "n_landmarks": 20},
}
ADAPTIVE = ("SparseKernelMMC", "KernelCPMMC", "CPMMC", "CrammerSingerMMC")


# -- problems --------------------------------------------------------------------------


def apart(rng: np.random.Generator, k: int, least: int = 8) -> np.ndarray:
    """Rows in k groups so far apart, and of sizes so close, that nobody doubts them; in any order."""
    d = int(rng.integers(2, 5))
    sizes = rng.integers(least, least + 5, k)
    centres = 14 * np.eye(k, d) + rng.standard_normal((k, d))
    rows = np.repeat(centres, sizes, axis=0) + 0.7 * rng.standard_normal(
        (sizes.sum(), d)
    )
    return rows[rng.permutation(len(rows))]


def anyhow(rng: np.random.Generator, n: int | None = None) -> np.ndarray:
    """Rows with or without groups, ties, equal rows, zeros, a constant column."""
    n = n or int(rng.integers(4, 60))
    d = int(rng.integers(1, 6))
    X = rng.standard_normal((n, d)) + 3.0 * rng.integers(0, 3, (n, 1)) * (
        rng.random() < 0.6
    )
    if rng.random() < 0.25:
        X = np.rint(X)
    if rng.random() < 0.25:
        X[rng.random(n) < 0.4] = X[0]
    if rng.random() < 0.25:
        X[rng.random((n, d)) < 0.4] = 0
    if rng.random() < 0.25:
        X[:, 0] = 7.0
    return X


def with_weights(rng: np.random.Generator, X: np.ndarray) -> np.ndarray | None:
    """No weights, whole ones or any."""
    kind = rng.integers(3)
    return [None, rng.integers(0, 4, len(X)), rng.lognormal(0, 1, len(X))][kind]


# -- answers ---------------------------------------------------------------------------


def fitted(model: Any, X: Any, weights: Any = None, **parameters: Any) -> Any:
    """The fitted model, or the sentence that refuses; warnings but those of clusters are errors."""
    model = clone(model).set_params(**{"random_state": 0} | parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for told in (mmcnb.ClusterWarning, ConvergenceWarning):
            warnings.simplefilter("ignore", told)
        try:
            return model.fit(X, sample_weight=weights)
        except mmcnb.InputError as error:
            sentence = str(error)
    assert "\n" not in sentence, f"more than a sentence: {sentence}"
    return sentence


def bits(answer: Any, X: np.ndarray) -> Any:
    """Labels, decisions and objective; of a refusal that there is one."""
    if isinstance(answer, str):
        return "refused"
    decided = (
        answer.decision_function(X)
        if hasattr(answer, "decision_function")
        else answer.transform(X)
    )
    return answer.labels_.tobytes(), decided.tobytes(), float(answer.objective_).hex()


def same_bits(one: Any, other: Any, X: np.ndarray, what: str) -> None:
    first = bits(one, X)
    second = bits(other, X)
    if "refused" in (first, second):
        assert first == second, f"{what}: one is refused: {one} / {other}"
        return
    names = ("labels", "decisions", "objective")
    differ = [name for name, a, b in zip(names, first, second, strict=True) if a != b]
    assert not differ, (
        f"{what}: {', '.join(differ)} differ ({one.objective_!r}, {other.objective_!r})"
    )


def same_groups(
    one: Any, other: Any, rows: Any = slice(None), often: Any = None
) -> None:
    """The same partition, up to the numbers of the clusters: ``other`` was fitted to these rows."""
    assert not isinstance(one, str), f"refused: {one}"
    assert not isinstance(other, str), f"refused: {other}"
    mine = one.labels_[rows] if often is None else np.repeat(one.labels_, often)
    pairs = set(zip(mine.tolist(), other.labels_.tolist(), strict=True))
    assert len(pairs) == len(set(mine.tolist())) == len(set(other.labels_.tolist())), (
        "labels differ"
    )


def near(one: Any, other: Any, rel: float) -> None:
    a = float(one.objective_)
    b = float(other.objective_)
    assert abs(a - b) <= rel * max(abs(a), abs(b)) + 1e-9, f"objectives {a!r} and {b!r}"


# -- laws ------------------------------------------------------------------------------


def labels_are_those_of_the_model(rng, name, folder):
    """labels_ == predict(X), clusters numbered by first rows, equal rows together, sizes counted."""
    X = anyhow(rng)
    weights = with_weights(rng, X)
    model = fitted(ESTIMATORS[name][1], X, weights)
    if isinstance(model, str):
        return "refused"
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    _, first = np.unique(model.labels_, return_index=True)
    assert (np.diff(first) > 0).all(), "clusters are not numbered by their first rows"
    _, of = np.unique(X, axis=0, return_inverse=True)
    for group in range(of.max() + 1):
        assert len(set(model.labels_[of.ravel() == group].tolist())) == 1, (
            "equal rows are parted"
        )
    if "sizes" in model.report_:
        sizes = np.bincount(model.labels_, weights, len(model.report_["sizes"]))
        np.testing.assert_allclose(model.report_["sizes"], sizes, rtol=1e-6, atol=1e-5)
    return "same"


def the_objective_follows_from_the_model(rng, name, folder):
    """Computed again from decisions, features or distances, by the formula of its docstring."""
    X = anyhow(rng)
    weights = with_weights(rng, X)
    model = fitted(ESTIMATORS[name][1], X, weights)
    if isinstance(model, str):
        return "refused"
    assert np.isfinite(model.objective_), "the objective is not finite"
    weights = np.ones(len(X)) if weights is None else weights
    if name in ADAPTIVE and hasattr(model, "rho_"):
        f = model.decision_function(X)
        margin = (
            np.abs(f)
            if f.ndim == 1
            else np.diff(np.sort(f, axis=1)[:, -2:], axis=1).ravel()
        )
        again = reference.hinge_objective(
            *(
                margin,
                np.ones(len(X)),
                model.report_["w_norm"] ** 2,
                model.rho_,
                model.report_["C"],
            ),
            weights / weights.sum(),
        )
    elif name.startswith("UnsupervisedRLS"):
        sums, sizes = sums_of_clusters(model.transform(X), model.labels_, weights)
        again = (
            (sums**2).sum(axis=1) / np.maximum(sizes, 1e-300)
        ).sum() / weights.sum()
    elif isinstance(model, mmcnb.MaximumMarginClustering) and model.n_clusters_ == len(
        set(model.labels_)
    ):
        again = mmcnb.partition_score(
            X, model.labels_, sample_weight=weights
        ).J  # all rows are nodes
    elif name == "KernelKMeans":
        again = weights @ model.transform(X).min(axis=1) ** 2
    else:
        return "finite"
    assert abs(model.objective_ - again) <= 1e-4 * abs(again) + 1e-5, (
        f"{model.objective_!r}, not {again!r}"
    )
    return "same"


def sums_of_clusters(
    z: np.ndarray, labels: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    of = np.eye(labels.max() + 1)[labels] * weights[:, None]
    return of.T @ z, of.sum(axis=0)


def no_labelling_is_better_than_the_best(rng, name, folder):
    """Of up to ten rows: no objective beats the best of all labellings, in the features of the model."""
    name = ("UnsupervisedRLS", "UnsupervisedRLS, equal", "KernelKMeans")[
        int(rng.integers(3))
    ]
    k, model = ESTIMATORS[name]
    X = anyhow(rng, int(rng.integers(max(4, k + 1), 9)))
    model = fitted(model, X)
    if isinstance(model, str):
        return "refused"
    z = (
        model.transform(X)
        if name != "KernelKMeans"
        else model.model_.ridge.decide(model_values(model, X))
    )
    best = -np.inf
    found = 0.0
    ones = np.ones(len(X))
    for rest in itertools.product(range(k), repeat=len(X) - 1):
        labels = np.array([0, *rest])
        sums, sizes = sums_of_clusters(z, labels, ones)
        best = max(best, ((sums**2).sum(axis=1) / np.maximum(sizes, 1)).sum())
    # |z|² less what the means explain, in features without the complement
    if name == "KernelKMeans":
        sums, sizes = sums_of_clusters(z, model.labels_, ones)
        found = ((sums**2).sum(axis=1) / np.maximum(sizes, 1)).sum()
    else:
        found = model.objective_
        best = best / len(X)
    assert found <= best * (1 + 1e-4) + 1e-5, (
        f"{found} is better than the best of all, {best}"
    )
    return "best" if found >= best * (1 - 1e-3) else "less"


def model_values(model: Any, X: np.ndarray) -> np.ndarray:
    from mmcnb.samples import open_samples

    return np.asarray(model.model_.features(open_samples(X)).block(0, len(X)))


def threads_change_nothing(rng, name, folder):
    X = anyhow(rng)
    weights = with_weights(rng, X)
    one, other = (
        fitted(ESTIMATORS[name][1], X, weights, n_jobs=n_jobs) for n_jobs in (1, 2)
    )
    same_bits(one, other, X, "two threads")
    return "refused" if isinstance(one, str) else "same"


def storage_changes_nothing(rng, name, folder):
    """Memory, .npy, Zarr in any chunks, our store and a Dask array, of any type of number."""
    X = anyhow(rng) if rng.random() < 0.5 else apart(rng, ESTIMATORS[name][0])
    kind = np.dtype(str(rng.choice(["f4", "f8", "i2", "u1", "f2", ">f4"])))
    X = (np.abs(X) if kind.kind == "u" else X).astype(kind)
    weights = with_weights(rng, X)
    return compare_storages(rng, ESTIMATORS[name][1], X, weights, folder, {})


def storage_of_many_rows_changes_nothing(rng, name, folder):
    """The same where rows stream by in several blocks, with two threads."""
    name = str(rng.choice(list(STREAMED)))
    X = anyhow(rng, LARGE)
    weights = rng.integers(0, 4, LARGE) * 0.1 if rng.random() < 0.5 else None
    X = X.astype(str(rng.choice(["f4", "f8"])))
    return compare_storages(
        rng, ESTIMATORS[name][1], X, weights, folder, STREAMED[name]
    )


def compare_storages(
    rng, model, X, weights, folder: Path, settings: dict[str, Any]
) -> str:
    chunks = int(rng.integers(1, len(X) + 1)), int(rng.integers(1, X.shape[1] + 1))
    chunks = (max(chunks[0], len(X) // 50), chunks[1])
    zarr.create_array(folder / "bare.zarr", data=X, chunks=chunks)
    with create_dense_store(
        folder / "ours.zarr",
        X.shape[1],
        dtype=X.dtype.newbyteorder("="),
        chunk_rows=max(64, chunks[0]),
    ) as writer:
        writer.append(X.astype(X.dtype.newbyteorder("=")))
    np.save(folder / "rows.npy", X)
    given = weights
    if weights is not None:
        given = folder / "weights.zarr"
        zarr.create_array(
            given, data=np.asarray(weights), chunks=(max(1, len(X) // 7),)
        )
    one = fitted(model, X, weights, n_jobs=1, **settings)
    stored = [
        folder / "bare.zarr",
        folder / "ours.zarr",
        folder / "rows.npy",
        dask.array.from_array(X, chunks),
    ]
    for source in stored:
        other = fitted(model, source, given, n_jobs=2, **settings)
        same_bits(one, other, X, f"{source} in chunks of {chunks}, {X.dtype}")
    return "refused" if isinstance(one, str) else "same"


def sparse_storage_changes_nothing(rng, name, folder):
    """CSR in memory and in a store to the bit; dense and CSR to rounding."""
    X = apart(rng, ESTIMATORS[name][0])
    X[np.abs(X) < 0.6] = 0
    csr = scipy.sparse.csr_array(X)
    weights = with_weights(rng, X)
    with create_csr_store(folder / "csr.zarr", X.shape[1], dtype="float64") as writer:
        writer.append(csr)
    model = ESTIMATORS[name][1]
    settings = {"scale": rng.choice([None, "standard"])}
    one = fitted(model, csr, weights, **settings)
    same_bits(
        one,
        fitted(model, folder / "csr.zarr", weights, n_jobs=2, **settings),
        X,
        "a store of CSR",
    )
    if settings["scale"] is None:  # sparse columns are scaled but not centred
        dense = fitted(model, X, weights)
        same_groups(one, dense)
        near(one, dense, 1e-3)
    return "same"


def dask_changes_nothing(rng, name, folder):
    """Two workers in this process, which take their groups from a store."""
    names = list(STREAMED)
    name = names[int(rng.integers(len(names)))]
    X = anyhow(rng, LARGE)
    weights = rng.integers(0, 4, LARGE) if rng.random() < 0.5 else None
    zarr.create_array(
        folder / "bare.zarr", data=X, chunks=(int(rng.integers(500, LARGE)), X.shape[1])
    )
    one = fitted(ESTIMATORS[name][1], X, weights, **STREAMED[name])
    other = fitted(
        ESTIMATORS[name][1],
        folder / "bare.zarr",
        weights,
        **STREAMED[name],
        engine=client(),
    )
    same_bits(one, other, X, "on Dask")
    return "refused" if isinstance(one, str) else "same"


@cache
def client() -> Any:
    """A cluster of this process, which ends with it."""
    from distributed import Client, LocalCluster

    stack = ExitStack()
    cluster = LocalCluster(
        2, threads_per_worker=1, processes=False, dashboard_address=None
    )
    return stack.enter_context(
        Client(stack.enter_context(cluster), set_as_default=False)
    )


def weights_are_repetitions(rng, name, folder):
    X = apart(rng, ESTIMATORS[name][0])
    weights = rng.integers(1, 4, len(X))
    one = fitted(ESTIMATORS[name][1], X, weights)
    other = fitted(ESTIMATORS[name][1], np.repeat(X, weights, 0))
    if (
        name in (*DRAWN, *SIZED)
        and not isinstance(one, str)
        and not isinstance(other, str)
    ):
        pairs = set(zip(np.repeat(one.labels_, weights), other.labels_, strict=True))
        if len(pairs) > ESTIMATORS[name][0]:
            return "another optimum"
    same_groups(one, other, often=weights)
    return "same"


def weights_count_by_their_proportions(rng, name, folder):
    """Whole weights times any constant give the same bits."""
    X = anyhow(rng)
    c = float(rng.choice(CONSTANTS))
    weights = rng.integers(0, 4, len(X))
    weights[0] = 1
    model = ESTIMATORS[name][1]
    one = fitted(model, X, weights)
    other = fitted(model, X, c * weights)
    if name == "KernelKMeans" and not isinstance(other, str):
        other.inertia_ = one.inertia_  # a sum over the weights
    same_bits(one, other, X, f"weights times {c:g}")
    return "refused" if isinstance(one, str) else "same"


def the_order_of_rows_counts_for_nothing(rng, name, folder):
    X = apart(rng, ESTIMATORS[name][0])
    order = rng.permutation(len(X))
    one = fitted(ESTIMATORS[name][1], X)
    other = fitted(ESTIMATORS[name][1], X[order])
    same_groups(one, other, order)
    return "same"


def the_order_of_columns_counts_for_nothing(rng, name, folder):
    """Columns in another order, and one more that is constant."""
    X = apart(rng, ESTIMATORS[name][0])
    order = rng.permutation(X.shape[1])
    one = fitted(ESTIMATORS[name][1], X)
    for other in (X[:, order], np.column_stack([X, np.full(len(X), 2.0)])):
        same_groups(one, fitted(ESTIMATORS[name][1], other))
    return "same"


def a_model_that_was_kept_is_the_model(rng, name, folder):
    """Saved, pickled, copied, fitted a second time, and a clone fitted with the same seed."""
    X = anyhow(rng)
    path = folder / "model.mmcnb"
    weights = with_weights(rng, X)
    one = fitted(ESTIMATORS[name][1], X, weights)
    same_bits(one, fitted(ESTIMATORS[name][1], X, weights), X, "a clone")
    if isinstance(one, str):
        return "refused"
    one.save(path)
    labels = one.labels_.copy()
    fresh = X[rng.permutation(len(X))] + 0.01
    for what, other in (
        ("loaded", mmcnb.load(path)),
        ("pickled", pickle.loads(pickle.dumps(one))),
        ("copied", copy.deepcopy(one)),
    ):
        for rows in (X, fresh):
            np.testing.assert_array_equal(
                other.predict(rows), one.predict(rows), err_msg=what
            )
        assert other.objective_ == one.objective_, what
    with warnings.catch_warnings(action="ignore"):
        one.fit(X, sample_weight=weights)
    np.testing.assert_array_equal(one.labels_, labels, err_msg="fitted a second time")
    return "same"


LAWS = (
    labels_are_those_of_the_model,
    the_objective_follows_from_the_model,
    no_labelling_is_better_than_the_best,
    threads_change_nothing,
    storage_changes_nothing,
    storage_of_many_rows_changes_nothing,
    sparse_storage_changes_nothing,
    dask_changes_nothing,
    weights_are_repetitions,
    weights_count_by_their_proportions,
    the_order_of_rows_counts_for_nothing,
    the_order_of_columns_counts_for_nothing,
    a_model_that_was_kept_is_the_model,
)


def attempt(seed: int, folder: Path) -> dict[str, Any]:
    """One law on one problem by one estimator; both go round, so that soon every pair is met."""
    rng = np.random.default_rng(seed)
    names = list(ESTIMATORS)
    law = LAWS[seed % len(LAWS)]
    name = names[seed % len(names)]
    return {"law": law.__name__, "estimator": name, "answer": law(rng, name, folder)}
