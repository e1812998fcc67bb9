"""What is no value of any parameter is refused, wherever it is given, by one sentence that names it."""

import inspect
import re

import matplotlib.pyplot as plt
import numpy as np
import pytest

import mmcnb
from mmcnb import datasets, plotting
from mmcnb.errors import InputError, shown

ROWS = np.concatenate([np.zeros((20, 3)), np.full((20, 3), 6.0)]) + np.arange(120).reshape(40, 3) % 7 / 10
HALVES = np.repeat([0, 1], 20)
NO_VALUES = {
    "bytes": b"a",
    "an object": object(),
    "a complex number": 1j,
    "a duration": np.timedelta64(1, "s"),
    "a matrix of dates": np.zeros((3, 3), "M8[s]"),
    "a type": int,
    "nan": np.nan,
    "an array of no dimension": np.array(1j),
}
KINDS = [
    kind
    for name in mmcnb.__all__
    if inspect.isclass(kind := getattr(mmcnb, name)) and hasattr(kind, "get_params")
]
PARAMETERS = [(kind, name) for kind in KINDS for name in kind().get_params(deep=False)]


def small(function, **fixed):
    return lambda **given: function(**(fixed | given))


def drawn(display):
    def draw(**given):
        return display.from_estimator(mmcnb.UnsupervisedRLS(random_state=0).fit(ROWS), ROWS, **given)

    return draw


def of_front_door(method, **fixed):
    def call(**given):
        model = mmcnb.MaximumMarginClustering(2, random_state=0).fit(ROWS)
        return getattr(model, method)(ROWS, **(fixed | given))

    return call


CALLS = {
    "labels_at": of_front_door("labels_at", n_clusters=2),
    "predict": of_front_door("predict", layer=None),
    "make_shape": small(datasets.make_shape, name="two-rings", n_samples=50, random_state=0),
    "make_block": small(
        datasets.make_block, kind="blobs", start=0, stop=5, n_features=3, random_state=0, n_clusters=2
    ),
    "partition_score": small(mmcnb.partition_score, X=ROWS, labels=HALVES, random_state=0),
    "config": small(mmcnb.config, memory_limit=None, n_jobs=None, engine=None),
    "warmup": small(mmcnb.warmup, estimator=None),
    "ClusterDisplay": drawn(plotting.ClusterDisplay),
    "ClusterMapDisplay": drawn(plotting.ClusterMapDisplay),
}
OPTIONS = [
    ("labels_at", "n_clusters"),
    ("predict", "layer"),
    *(("make_shape", name) for name in ("name", "n_samples", "random_state")),
    *(("make_block", n) for n in ("kind", "start", "stop", "n_features", "random_state", "n_clusters")),
    *(("partition_score", name) for name in ("sample_weight", "metric", "n_nodes", "random_state")),
    *(("config", name) for name in ("memory_limit", "n_jobs", "engine")),
    ("warmup", "estimator"),
    *(("ClusterDisplay", name) for name in ("features", "sample_size", "random_state")),
    *(("ClusterMapDisplay", name) for name in ("labels", "sample_size", "random_state")),
]


def assert_refused(call, name):
    for what, value in NO_VALUES.items():
        try:
            call(**{name: value})
        except InputError as error:
            said = str(error)
        else:
            said = f"{what} is taken"
        assert re.fullmatch(rf"[^\n]*{name}[^\n]*\.", said)


@pytest.mark.parametrize(("kind", "name"), PARAMETERS, ids=lambda case: getattr(case, "__name__", case))
def test_no_parameter_of_an_estimator_takes_them(kind, name):
    assert_refused(lambda **given: kind(**given).fit(ROWS, HALVES), name)


@pytest.mark.parametrize(("function", "name"), OPTIONS)
def test_no_option_of_a_function_takes_them(function, name):
    assert_refused(CALLS[function], name)
    plt.close("all")


@pytest.mark.parametrize(
    "value", [np.eye(3), np.arange(10**4), "a\nb", ["x" * 500], {"a": np.eye(2)}], ids=range(5)
)
def test_a_value_is_shown_on_one_line_that_can_be_read(value):
    assert "\n" not in shown(value)
    assert len(shown(value)) <= 120
    with pytest.raises(InputError, match=r"^C=[^\n]* is out of range; give a number above 1\.$"):
        mmcnb.CPMMC(C=value).fit(ROWS)


@pytest.mark.parametrize("path", ["", "\0", "a/" * 3000, 3, b"run"])
def test_a_checkpoint_that_can_be_no_path_is_one_sentence(path):
    with pytest.raises(InputError, match=r"^checkpoint [^\n]*\.$"):
        mmcnb.CPMMC(checkpoint=path).fit(ROWS)
