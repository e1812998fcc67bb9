"""Every parameter is read: changing it changes the fit; the same name has the same default."""

import inspect
from functools import cache

import pytest

import mmcnb
from tests.estimators.conftest import make_blobs
from tests.estimators.every import NAMES, make_any
from tests.estimators.several_kernels import KERNELS

CHANGED = {
    "n_clusters": 4,
    "C": 3.0,
    "alpha": 0.1,
    "gamma": 1.5,
    "kernel": "linear",
    "threshold": "fixed",
    "basis": "paper",
    "n_landmarks": 7,
    "landmarks": [[-2.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.0, 1.0, 0.3]],
    "continuation": False,
    "centre": False,
    "init": "k-means",
    "n_init": 1,
    "search": "steepest",
    "schedule": "paper",
    "n_parents": 2,
    "n_offspring": 2,
    "patience": 3,
    "sample_size": 60,
    "balance": 0.05,
    "min_share": 1.0,
    "cluster_sizes": [0.5, 0.3, 0.2],
    "size_tolerance": 0.4,
    "scale": "standard",
    "eta": 0.3,
    "tol": 0.5,
    "max_rounds": 1,
    "max_passes": 1,
    "max_iter": 1,
    "max_generations": 5,
    "degree": 2,
    "coef0": 0.2,
    "random_state": 5,
    "kernels": KERNELS[:2],
    "columns": [[0], None, None],
}
OF_ONE_METHOD = {"MultipleKernelClustering": {"basis": "exact", "n_clusters": 3}}
# they change no result
RUNTIME = {
    "memory_limit",
    "n_jobs",
    "verbose",
    "checkpoint",
    "engine",
}
BASES = {
    "CrammerSingerMMC": {"n_clusters": 3, "gamma": 0.02},
    "UnsupervisedRLS": {"n_clusters": 3},
    "KernelKMeans": {"n_clusters": 3, "n_landmarks": 20},
    "MultipleKernelClustering": {"kernels": KERNELS, "C": 3.5},
}
ALONGSIDE = {
    "degree": {"kernel": "poly"},
    "coef0": {"kernel": "poly"},
    "random_state": {"init": "random"},
    "min_share": {"cluster_sizes": None},
    "tol": {"sample_size": 12},  # more rows follow
}
PARAMETERS = [
    (name, parameter)
    for name in NAMES
    for parameter in getattr(mmcnb, name)().get_params()
    if name != "MaximumMarginClustering" and parameter not in RUNTIME
]
# The sample of the exact method has 2,000 rows: see test_convergence.py.
PARAMETERS.remove(("KernelCPMMC", "tol"))


@cache
def history(name, alongside, changed=None):
    """The history of a fit with some parameter changed, or none."""
    X = make_blobs(100, gap=2.0) * [1.0, 2.0, 0.5]
    parameters = {"gamma": 0.5} | BASES.get(name, {}) | ALONGSIDE.get(alongside, {})
    if changed:
        parameters[changed] = (CHANGED | OF_ONE_METHOD.get(name, {}))[changed]
    return (
        make_any(name, n_jobs=1, **parameters).fit(X).history_.drop(columns="seconds")
    )


@pytest.mark.slow
@pytest.mark.parametrize(("name", "parameter"), PARAMETERS)
def test_changing_a_parameter_changes_the_fit(name, parameter):
    alongside = parameter if parameter in ALONGSIDE else None
    assert not history(name, alongside).equals(history(name, alongside, parameter))


@pytest.mark.parametrize("name", NAMES)
def test_parameters_are_stored_as_they_come(name):
    objects = {
        parameter: object()
        for parameter in getattr(mmcnb, name)().get_params(deep=False)
    }
    assert getattr(mmcnb, name)(**objects).get_params(deep=False) == objects


def test_defaults_are_the_same_wherever_a_name_is_the_same():
    whole = mmcnb.SparseKernelMMC().get_params()
    for name in ("KernelCPMMC", "CPMMC", "EvolutionaryMMC"):
        for parameter, default in getattr(mmcnb, name)().get_params().items():
            of_evolutions = name == "EvolutionaryMMC" and parameter in (
                "n_init",
                "balance",
            )
            assert of_evolutions or default == whole.get(parameter, default)


@pytest.mark.parametrize("name", NAMES)
def test_a_signature_has_the_order_of_its_docstring(name):
    estimator = getattr(mmcnb, name)
    documented = [
        line.split(" : ")[0]
        for line in estimator.__doc__.split("Attributes")[0].splitlines()
        if " : " in line
    ]
    names = ", ".join(one for one in documented if not one.startswith(" ")).split(", ")
    assert list(inspect.signature(estimator).parameters) == names
