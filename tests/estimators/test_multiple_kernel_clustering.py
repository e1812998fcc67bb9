"""Labels, margin and kernel weights of a fit: what the definition and the parameters ask."""

import itertools

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import make_circles, make_moons
from sklearn.metrics import adjusted_rand_score

import mmcnb
from mmcnb import MultipleKernelClustering
from mmcnb.engine.session import open_engine
from mmcnb.features.kernel import Kernel
from mmcnb.features.rules import GivenLabels
from mmcnb.hinge.cutting_plane import Objective, SweepBudget
from mmcnb.hinge.multiple_kernels import MultipleKernelWorkingSet
from mmcnb.hinge.training_set import TrainingSet
from mmcnb.metrics import balanced_clustering_error
from mmcnb.samples import open_samples
from tests import reference
from tests.estimators.conftest import make_blobs, make_rings, same_clusters
from tests.estimators.several_kernels import (
    KERNELS,
    everything,
    fitted,
    groups,
    margins,
    one_time,
    seven_times,
    two_and_three,
    with_constant,
)

# -- the definition --------------------------------------------------------------------


def naive_objective(model, X, kernels, C, threshold):
    """|v|² under all kernels, and the objective, from decision values and whole kernel matrices."""
    basis = model.model_.basis.astype(np.float64)
    coef = np.atleast_2d(model.model_.rule.coef.T)
    p = basis.shape[0]
    norm2 = 0.0
    for j, (kernel, beta) in enumerate(
        zip(kernels, model.kernel_weights_, strict=True)
    ):
        part = coef[:, j * p : (j + 1) * p]
        gram = kernel(basis, basis)
        centred = reference.centred(kernel(X, X))
        # The kernel is scaled to a spread of 1: v = Σ c k(b, .) has |v|² = c'Kc in its
        # own units.
        total_variance = np.trace(centred) / len(X)
        norm2 += total_variance * np.einsum("ri,ij,rj", part, gram, part) / beta
    rho = model.rho_
    hinge = np.maximum(0, rho - margins(model.decision_function(X))).mean()
    return norm2, 0.5 * norm2 - (rho if threshold == "adaptive" else 0) + C * hinge


@pytest.mark.parametrize(
    ("threshold", "k", "form"),
    [
        ("adaptive", 2, {"basis": "exact"}),
        ("adaptive", 3, {"n_landmarks": 1000}),
        ("fixed", 2, {"n_landmarks": 1000}),
        ("fixed", 3, {"basis": "exact"}),
    ],
)
def test_objective_is_that_of_kernel_matrices_weights_and_decision_values(
    threshold, k, form
):
    X = groups(k, 90)
    kernels = [Kernel("rbf", 0.5), Kernel("linear")]
    model = fitted(X, k, kernels=kernels, threshold=threshold, **form)
    norm2, objective = naive_objective(model, X, kernels, model.report_["C"], threshold)
    assert model.report_["w_norm"] ** 2 == pytest.approx(norm2, rel=1e-6)
    assert model.objective_ == pytest.approx(objective, rel=1e-6, abs=1e-9)


@two_and_three
def test_whole_matrices_are_landmarks_at_every_row(k):
    X = groups(k, 90)
    assert everything(fitted(X, k, basis="exact"), X) == everything(
        fitted(X, k, n_landmarks=90), X
    )


@pytest.mark.parametrize(
    ("threshold", "k", "sample_size"),
    [("adaptive", 2, None), ("adaptive", 3, 90), ("fixed", 2, 90), ("fixed", 3, None)],
)
def test_labels_weights_and_scores_keep_their_laws(threshold, k, sample_size):
    X = groups(k, 300, seed=1)
    model = fitted(X, k, threshold=threshold, sample_size=sample_size)
    labels = model.labels_
    f = model.decision_function(X)
    np.testing.assert_array_equal(labels, model.predict(X))
    np.testing.assert_array_equal(labels, f >= 0 if k == 2 else f.argmax(axis=1))
    assert labels.dtype == np.int32
    firsts = [np.flatnonzero(labels == h)[0] for h in range(k)]
    assert firsts == sorted(firsts)
    assert model.report_["sizes"] == np.bincount(labels, minlength=k).tolist()
    assert np.linalg.norm(model.kernel_weights_) == pytest.approx(1.0, abs=1e-12)
    assert (model.kernel_weights_ >= 0).all()
    weights = model.history_[["weight_0", "weight_1", "weight_2"]].to_numpy()
    np.testing.assert_allclose(np.linalg.norm(weights, axis=1), 1.0)
    assert model.kernel_names_ == ["rbf, gamma=0.5", "rbf, gamma=0.05", "linear"]
    assert (model.rho_ == 1.0) == (threshold == "fixed")
    if k == 2:
        assert balanced_clustering_error(X[:, 0] > 0, labels) < 0.1
    else:
        assert adjusted_rand_score((X[:, :2] > 2.5) @ [1, 2], labels) > 0.8
    assert "all rows" in set(model.history_["stage"]) if sample_size else True


@pytest.mark.parametrize("balance", [0.0, 0.05])
def test_mean_decision_value_of_two_clusters_is_within_the_balance(balance):
    X = make_blobs(200)
    model = fitted(X, balance=balance)
    assert model.report_["quantile_steps"] == 0
    assert abs(model.decision_function(X).mean()) <= balance * model.rho_ + 1e-6


def best_objective(X, kernels, C):
    """The least objective over all labelings with two rows a cluster, each solved to its end."""
    n = len(X)
    parts = [centred_features(kernel, X) for kernel in kernels]
    form = Objective("fixed", 0.0, 1.0)
    best = (np.inf, None)
    with open_engine(n_jobs=1) as engine:
        training_set = TrainingSet(
            engine,
            open_samples(np.hstack(parts)),
            (np.eye(n),) * len(kernels),
            hold_labels=True,
        )
        for signs in itertools.product((-1, 1), repeat=n - 1):
            y = np.array((1, *signs), np.int8)
            if min((y > 0).sum(), (y < 0).sum()) < 2:
                continue
            planes = MultipleKernelWorkingSet(training_set)
            labels = GivenLabels(y)
            found = planes.cutting_plane(
                labels, form, C, 1e-5, lambda row: None, SweepBudget()
            )
            best = min(best, (found.primal, y.tolist()))
    return best


def centred_features(kernel, X):
    """The rows in coordinates in which the kernel, centred and of spread 1, is an inner product."""
    gram = reference.centred(kernel(X, X))
    values, vectors = np.linalg.eigh(gram / (np.trace(gram) / len(X)))
    return vectors * np.sqrt(np.maximum(values, 0))


@pytest.mark.parametrize("seed", range(2))
def test_a_fit_reaches_the_best_of_all_labelings(seed):
    rng = np.random.default_rng(seed)
    X = np.r_[
        rng.standard_normal((4, 2)) * 0.7, rng.standard_normal((4, 2)) * 0.7 + [2.5, 0]
    ]
    kernels = [Kernel("rbf", 0.5), Kernel("linear")]
    best, labels = best_objective(X, kernels, 3.0)
    form = {
        "basis": "exact",
        "threshold": "fixed",
        "eta": 1e-5,
        "n_init": 8,
        "min_share": 0.0,
    }
    model = fitted(X, kernels=kernels, C=3.0, **form)
    assert model.objective_ == pytest.approx(best, rel=1e-3)
    assert same_clusters(model.labels_, (np.array(labels) > 0).astype(int))


# -- one kernel, and what a kernel's scale, order and centre do ------------------------


@pytest.mark.parametrize(
    ("threshold", "kernel"), [("adaptive", "rbf"), ("fixed", "linear")]
)
def test_one_kernel_is_sparse_kernel_mmc_but_for_the_scale_of_the_kernel(
    threshold, kernel
):
    X = make_blobs(160)
    # a threshold of 1 knows the scale: give it a kernel whose spread is 1
    if threshold == "fixed":
        X = X / np.sqrt(X.var(axis=0).sum())
    shared = {
        "C": 3.5,
        "n_init": 2,
        "random_state": 0,
        "threshold": threshold,
        "eta": 1e-5,
    }
    shared |= {"n_landmarks": 1000}
    alone = mmcnb.SparseKernelMMC(kernel=kernel, gamma=0.5, **shared).fit(X)
    model = MultipleKernelClustering(kernels=[Kernel(kernel, 0.5)], **shared).fit(X)
    np.testing.assert_array_equal(model.labels_, alone.labels_)
    assert model.kernel_weights_.tolist() == [1.0]
    total_variance = np.trace(reference.centred(Kernel(kernel, 0.5)(X, X))) / len(X)
    assert model.report_["w_norm"] * np.sqrt(total_variance) == pytest.approx(
        alone.report_["w_norm"], rel=1e-3
    )
    # f is w·φ, and both are scaled.
    f = model.decision_function(X) * total_variance
    g = alone.decision_function(X)
    np.testing.assert_allclose(f, g, atol=0.02 * np.abs(g).max())


@pytest.mark.parametrize(
    ("k", "changed"), [(2, seven_times), (2, with_constant), (3, seven_times)]
)
def test_neither_the_scale_of_a_kernel_nor_a_constant_added_to_it_matters(k, changed):
    X = groups(k, 120)
    settings = {"eta": 1e-4, "basis": "exact"}
    one, other = (
        fitted(X, k, kernels=[kernel, "linear"], **settings)
        for kernel in (one_time, changed)
    )
    np.testing.assert_array_equal(one.labels_, other.labels_)
    np.testing.assert_allclose(other.kernel_weights_, one.kernel_weights_, rtol=1e-3)
    assert other.objective_ == pytest.approx(one.objective_, rel=1e-3)


def test_the_order_of_the_kernels_permutes_the_weights():
    X = groups(3, 120)
    one = fitted(X, 3, eta=1e-4)
    other = fitted(X, 3, eta=1e-4, kernels=KERNELS[::-1])
    np.testing.assert_array_equal(one.labels_, other.labels_)
    np.testing.assert_allclose(
        other.kernel_weights_[::-1], one.kernel_weights_, atol=1e-3
    )
    assert other.kernel_names_ == one.kernel_names_[::-1]


def test_names_objects_and_functions_of_one_kernel_agree():
    X = make_blobs(120)
    names = fitted(X, kernels=[("rbf", {"gamma": 0.5}), "linear"])
    objects = fitted(X, kernels=[Kernel("rbf", 0.5), Kernel("linear")])
    assert everything(names, X) == everything(objects, X)
    functions = fitted(X, kernels=[one_time, "linear"])
    np.testing.assert_array_equal(functions.labels_, names.labels_)
    np.testing.assert_allclose(
        functions.kernel_weights_, names.kernel_weights_, rtol=1e-3
    )
    assert functions.kernel_names_ == ["one_time", "linear"]


# -- columns ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "part", [[1, 0, 1], slice(2), [True, True, False, False, False]]
)
def test_a_kernel_on_some_columns_is_the_fit_on_these_columns(part):
    X = make_rings(150, d=2)
    noisy = np.c_[X, np.random.default_rng(1).standard_normal((150, 3))]
    kernels = [("rbf", {"gamma": 2.0}), "linear"]
    # All rows are landmarks, for noise moves those that are drawn.
    alone = fitted(X, kernels=kernels, basis="exact")
    among = fitted(noisy, kernels=kernels, columns=[part, part], basis="exact")
    np.testing.assert_array_equal(among.labels_, alone.labels_)
    np.testing.assert_allclose(among.kernel_weights_, alone.kernel_weights_, atol=1e-6)
    assert among.objective_ == pytest.approx(alone.objective_, rel=1e-6)


@pytest.mark.parametrize(("k", "sparse"), [(2, True), (3, False)])
def test_the_view_that_has_the_clusters_weighs_most(k, sparse):
    X = groups(k, 300, d=3)
    both = np.c_[np.random.default_rng(1).standard_normal((300, 3)), X]
    both = scipy.sparse.csr_array(both) if sparse else both
    views = {"kernels": ["rbf", "rbf"], "columns": [slice(3), [3, 4, 5]]}
    model = fitted(both, k, **views)
    assert model.kernel_weights_[1] > 2 * model.kernel_weights_[0]
    assert model.kernel_names_[1].endswith(", columns 3 to 5")


@two_and_three
def test_few_landmarks_are_no_reason_to_take_kernels_for_copies(k):
    X = make_blobs(100)
    model = fitted(X, k, n_landmarks=1)
    assert len(model.kernel_names_) == 3
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_automatic_kernels_that_rounding_alone_tells_apart_are_left_out():
    names = fitted(make_blobs(60) + 1e5, kernels="auto").kernel_names_
    assert [name.split(",")[0] for name in names] == ["rbf"] * 3
    two_places = np.repeat([[0.0, 0.0], [1.0, 1.0]], [20, 15], axis=0)
    assert fitted(two_places, kernels="auto").kernel_names_ == ["linear"]


# -- the starts ------------------------------------------------------------------------


def in_noise(X, columns, seed):
    noise = 0.03 * np.random.default_rng(seed).standard_normal((len(X), columns))
    return np.hstack([X, noise])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("shape", "columns"), [("rings", 62), ("moons", 20)])
def test_starts_find_shapes_in_columns_of_noise(shape, columns, seed):
    make = {"rings": make_circles, "moons": make_moons}[shape]
    factor = {"factor": 0.4} if shape == "rings" else {}
    X, y = make(1500, noise=0.05, random_state=seed, **factor)
    X = in_noise(X, columns, seed)
    model = MultipleKernelClustering(random_state=seed).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.99
    assert model.report_["warnings"] == []


def test_starts_that_disagree_are_told_and_more_of_them_are_the_remedy():
    X, y = make_circles(1500, noise=0.05, factor=0.4, random_state=2)
    X = in_noise(X, 62, 2)
    with pytest.warns(mmcnb.ClusterWarning, match="1 start has other .* n_init"):
        few = MultipleKernelClustering(n_init=2, random_state=2).fit(X)
    assert adjusted_rand_score(y, few.labels_) < 0.1
    more = MultipleKernelClustering(n_init=4, random_state=2).fit(X)
    assert adjusted_rand_score(y, more.labels_) > 0.99
    assert more.report_["warnings"] == []


def test_starts_of_three_clusters_that_disagree_are_told():
    X = np.random.default_rng(0).standard_normal((300, 6))
    with pytest.warns(mmcnb.ClusterWarning, match="starts? ha(s|ve) other labels"):
        fitted(X, 3, n_init=4)
