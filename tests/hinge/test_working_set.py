import numpy as np
import pytest

from mmcnb.features.rules import Hyperplane, coin_flip
from tests import reference
from tests.hinge.problems import given, make_planes, two_groups

KINDS = ["exact", "all rows", "landmarks", "linear"]


def weights_of(n, weighted):
    return np.random.default_rng(9).integers(1, 4, n).astype(float) if weighted else None


def shares_of(n, weights):
    return np.full(n, 1 / n) if weights is None else weights / weights.sum()


def some_hyperplanes(planes, count=4):
    rng = np.random.default_rng(5)
    p = planes.training_set.mean.shape[0]
    for _ in range(count):
        yield Hyperplane(rng.standard_normal(p) / p, 0.1 * rng.standard_normal()), float(rng.random() * 0.3)


def with_some_planes(kind, engine, X, y, weights=None):
    planes, K = make_planes(kind, engine, X, weights=weights)
    planes.relabel(given(y))
    for hyperplane, rho in some_hyperplanes(planes):
        found = planes.find_most_violated(given(y), hyperplane, rho)
        planes.add(found)
    return planes, K


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
def test_planes_are_the_weighted_sums_of_their_rows(engine, kind, weighted):
    X, y = two_groups(40)
    shares = shares_of(40, weights_of(40, weighted))
    planes, K = with_some_planes(kind, engine, X, y, weights_of(40, weighted))
    masks = [np.ones(40)]
    for hyperplane, rho in some_hyperplanes(planes):
        masks.append(y * planes.training_set.decide(hyperplane) <= rho)
    a = np.array(masks) * y * shares
    H = np.eye(40) - np.outer(np.ones(40), shares)
    np.testing.assert_allclose(planes.s, np.array(masks) @ shares, rtol=1e-12)
    np.testing.assert_allclose(planes.t, a.sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(planes.gram, a @ (H @ K @ H.T) @ a.T, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
def test_planes_rebuilt_under_the_same_labels_are_the_same(engine, kind, weighted):
    X, y = two_groups(40)
    planes, _ = with_some_planes(kind, engine, X, y, weights_of(40, weighted))
    before = planes.s.copy(), planes.t.copy(), planes.centred.copy(), planes.coefs.copy()
    planes.relabel(given(y))
    for old, new in zip(before, (planes.s, planes.t, planes.centred, planes.coefs), strict=True):
        np.testing.assert_allclose(new, old, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_planes_rebuilt_under_other_labels_are_those_built_from_them(engine, kind):
    X, y = two_groups(40)
    other = np.roll(y, 1)
    planes, K = with_some_planes(kind, engine, X, y)
    planes.relabel(given(other))
    # c is an arbitrary 0/1 vector; the plane of all rows and the share of rows say that it is one of n rows.
    np.testing.assert_allclose(planes.s * 40, np.round(planes.s * 40), atol=1e-9)
    first = other / 40 @ reference.centred(K) @ other / 40
    assert planes.gram[0, 0] == pytest.approx(first)
    assert planes.t[0] == pytest.approx(other.mean())


@pytest.mark.parametrize("kind", KINDS)
def test_gram_is_symmetric_and_positive(engine, kind):
    X, y = two_groups(40)
    planes, _ = with_some_planes(kind, engine, X, y)
    np.testing.assert_array_equal(planes.gram, planes.gram.T)
    assert np.linalg.eigvalsh(planes.gram).min() > -1e-12


def test_exact_planes_and_all_rows_as_basis_agree(engine):
    X, y = two_groups(60)
    exact, _ = with_some_planes("exact", engine, X, y)
    basis, _ = with_some_planes("all rows", engine, X, y)
    np.testing.assert_allclose(basis.gram, exact.gram, rtol=1e-6, atol=1e-12)
    multipliers = np.linspace(0.1, 1, 5)
    one, other = (
        planes.training_set.decide(planes.hyperplane(multipliers, 0.2)) for planes in (exact, basis)
    )
    np.testing.assert_allclose(other, one, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
def test_hyperplane_has_the_asked_mean_and_norm(engine, kind, weighted):
    X, y = two_groups(40)
    shares = shares_of(40, weights_of(40, weighted))
    planes, _ = with_some_planes(kind, engine, X, y, weights_of(40, weighted))
    multipliers = np.linspace(0.1, 1, 5)
    hyperplane = planes.hyperplane(multipliers, 0.37)
    f = planes.training_set.decide(hyperplane)
    assert shares @ f == pytest.approx(0.37)
    # w.P_k, by the decision values and by the Gram matrix.
    products = planes.centred @ hyperplane.coef
    np.testing.assert_allclose(products, planes.gram @ multipliers, rtol=1e-9, atol=1e-12)
    assert (shares * y) @ (f - 0.37) == pytest.approx(products[0])


@pytest.mark.parametrize("kind", KINDS)
def test_dropped_planes_leave_the_others_as_they_were(engine, kind):
    X, y = two_groups(40)
    planes, _ = with_some_planes(kind, engine, X, y)
    gram, kept = planes.gram, np.array([True, False, True, True, False])
    planes.keep(kept)
    np.testing.assert_allclose(planes.gram, gram[np.ix_(kept, kept)], atol=1e-14)
    planes.relabel(given(y))
    np.testing.assert_allclose(planes.gram, gram[np.ix_(kept, kept)], atol=1e-12)


@pytest.mark.parametrize("n", [2, 3, 10, 1000])
def test_coin_flips_hold_both_labels(n):
    for seed in range(30):
        y = coin_flip(n, np.random.RandomState(seed)).y
        assert y.dtype == np.int8
        assert set(y.tolist()) == {-1, 1}
