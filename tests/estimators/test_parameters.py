"""Every parameter of a constructor is read: changing it changes the fit, or is refused."""

import inspect

import pytest

import mmcnb
from mmcnb.estimators.base import StreamedClusterer
from mmcnb.estimators.parameters import estimator
from tests.estimators.conftest import ESTIMATORS, make, make_blobs

CHANGED = {
    "n_clusters": 3,
    "C": 3.0,
    "gamma": 1.5,
    "kernel": "linear",
    "threshold": "fixed",
    "basis": "paper",
    "n_landmarks": 7,
    "landmarks": [[-2.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.0, 1.0, 0.3]],
    "continuation": False,
    "init": "k-means",
    "n_init": 1,
    "sample_size": 60,
    "balance": 0.05,
    "min_share": 1.0,
    "cluster_sizes": [0.5, 0.3, 0.2],
    "size_tolerance": 0.4,
    "scale": "standard",
    "eta": 0.3,
    "max_rounds": 1,
    "degree": 2,
    "coef0": 0.2,
    "random_state": 5,
}
REFUSED = {"memory_limit": "1MiB", "n_jobs": 0}
ELSEWHERE = {"verbose", "checkpoint", "engine"}  # they change nothing; tested below and in their own files
BASE = {"degree": {"kernel": "poly"}, "coef0": {"kernel": "poly"}, "random_state": {"init": "random"}}


def history(X, name, parameters):
    return make(name, n_jobs=1, **parameters).fit(X).history_.drop(columns="seconds")


@pytest.fixture(scope="module")
def base_history(X):
    """A function that gives the history of a fit that others are compared with; each is fitted once."""
    found = {}

    def once(name, base):
        key = name, *base.items()
        if key not in found:
            found[key] = history(X, name, base)
        return found[key]

    return once


def parameters_of(name):
    return list(inspect.signature(getattr(mmcnb, name)).parameters)


@pytest.fixture(scope="module")
def X():
    return make_blobs(100, gap=2.0) * [1.0, 2.0, 0.5]


@pytest.mark.parametrize(
    ("name", "parameter"),
    [(name, parameter) for name in ESTIMATORS for parameter in parameters_of(name) if parameter in CHANGED],
)
@pytest.mark.slow
def test_changing_a_parameter_changes_the_fit(X, base_history, name, parameter):
    base = BASE.get(parameter, {})
    changed = base | {parameter: CHANGED[parameter]}
    assert not base_history(name, base).equals(history(X, name, changed))


@pytest.mark.parametrize("parameter", [one for one in parameters_of("CrammerSingerMMC") if one in CHANGED])
@pytest.mark.slow
def test_changing_a_parameter_changes_the_fit_of_three_clusters(X, base_history, parameter):
    base = {"n_clusters": 3, "gamma": 0.02} | BASE.get(parameter, {})
    base.pop("init", None)
    base |= {"cluster_sizes": None} if parameter == "min_share" else {}
    changed = base | ({"n_clusters": 4} if parameter == "n_clusters" else {parameter: CHANGED[parameter]})
    assert not base_history("CrammerSingerMMC", base).equals(history(X, "CrammerSingerMMC", changed))


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("parameter", REFUSED)
def test_a_limit_that_cannot_be_kept_is_refused(X, name, parameter):
    with pytest.raises(ValueError, match=rf"^[^\n]*{parameter}[^\n]*\.$"):
        make(name, **{parameter: REFUSED[parameter]}).fit(X)


@pytest.mark.parametrize("name", [*ESTIMATORS, "CrammerSingerMMC"])
def test_every_parameter_is_covered_here(name):
    assert set(parameters_of(name)) <= set(CHANGED) | set(REFUSED) | ELSEWHERE


@pytest.mark.parametrize("name", ESTIMATORS)
def test_verbose_shows_a_bar_on_a_terminal_alone(X, name, capsys, monkeypatch):
    make(name, verbose=1).fit(X).predict(X)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("mmcnb._progress.DELAY", 0)
    make(name, verbose=1).fit(X).predict(X)
    assert "labels" in capsys.readouterr().err
    make(name, verbose=0).fit(X).predict(X)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", ESTIMATORS)
def test_parameters_are_stored_as_given(name):
    given = {parameter: object() for parameter in parameters_of(name)}
    model = getattr(mmcnb, name)(**given)
    assert model.get_params(deep=False) == given


def test_defaults_are_the_same_wherever_a_name_is_the_same():
    whole = inspect.signature(mmcnb.SparseKernelMMC).parameters
    for name in ("KernelCPMMC", "CPMMC"):
        for parameter, held in inspect.signature(getattr(mmcnb, name)).parameters.items():
            assert held.default == whole[parameter].default


@pytest.mark.parametrize("indent", ["", "    "])  # Python strips that of docstrings from 3.13 on
def test_a_signature_has_the_order_of_its_docstring_whatever_its_indentation(indent):
    lines = [
        "",
        "",
        "Parameters",
        "----------",
        "a : int",
        "    One.",
        "b : int",
        "    Two.",
        "{runtime}",
        "",
    ]
    told = "Rows." + "\n".join(indent + line for line in lines)
    fields = {"__annotations__": {"b": int, "a": int}, "b": 2, "a": 1, "__doc__": told}
    made = estimator(type("Own", (StreamedClusterer,), fields))
    assert list(inspect.signature(made).parameters)[:3] == ["a", "b", "memory_limit"]
    assert "\nmemory_limit : " in made.__doc__
