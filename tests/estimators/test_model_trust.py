"""What a model file says is believed as little as other input."""

import socket

import pytest

import mmcnb
from mmcnb.errors import InputError
from mmcnb.features.model import read_model, write_model
from tests.estimators.conftest import make, make_blobs


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model"
    model = make(
        "SparseKernelMMC", n_init=1, n_landmarks=5, n_jobs=1, memory_limit="2GiB"
    )
    model.fit(make_blobs(80)).save(path)
    return path


@pytest.fixture
def rewritten(model_file, tmp_path):
    """A function that gives a file with sound checksums, whose header or its parameters were changed."""

    def rewrite(header=None, parameters=None):
        new, arrays = read_model(model_file)
        new |= header or {}
        new["parameters"] |= parameters or {}
        write_model(tmp_path / "odd", new, arrays)
        return tmp_path / "odd"

    return rewrite


@pytest.mark.slow
def test_a_model_file_decides_nothing_about_whom_we_connect_to(rewritten):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.5)
        engine = {"engine": f"tcp://127.0.0.1:{server.getsockname()[1]}"}
        with pytest.raises(
            InputError,
            match=r"^[^\n]*odd gives SparseKernelMMC the parameter 'engine'.*do not trust",
        ):
            mmcnb.load(rewritten(parameters=engine))
        model = mmcnb.load(rewritten(header=engine))
        assert model.engine is None
        assert model.predict(make_blobs(20)).shape == (20,)
        with pytest.raises(TimeoutError):
            server.accept()


def test_how_a_fit_was_run_is_not_in_its_file(model_file):
    header, _ = read_model(model_file)
    assert not {"memory_limit", "n_jobs", "verbose", "engine", "checkpoint"} & set(
        header["parameters"]
    )
    model = mmcnb.load(model_file)
    assert (model.memory_limit, model.n_jobs, model.engine, model.checkpoint) == (
        None,
    ) * 4


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        (
            {"checkpoint": "/somewhere"},
            "the parameter 'checkpoint', which no model of this version has",
        ),
        (
            {"memory_limit": "1GiB"},
            "the parameter 'memory_limit', which no model of this version has",
        ),
        (
            {"colour": "red"},
            "the parameter 'colour', which no model of this version has",
        ),
        ({"C": -1.0}, r"has an invalid parameter: C=-1\.0 is out of range"),
        (
            {"kernel": "__import__"},
            "has an invalid parameter: kernel='__import__' is unknown",
        ),
        (
            {"n_init": [1]},
            r"has an invalid parameter: n_init=\[1\] is out of range",
        ),
        ({"random_state": "0"}, "has random_state='0', which is not a seed"),
    ],
)
def test_parameters_are_those_of_the_class_and_of_its_values(
    rewritten, parameters, sentence
):
    with pytest.raises(InputError, match=rf"^[^\n]*odd [^\n]*{sentence}[^\n]*\.$"):
        mmcnb.load(rewritten(parameters=parameters))


@pytest.mark.parametrize(
    ("name", "value"),
    [("converged", 1.5), ("report", []), ("n_features_in", "3")],
)
def test_fitted_attributes_have_their_types(rewritten, name, value):
    with pytest.raises(InputError, match=rf"^[^\n]*odd has {name}=[^\n]*\.$"):
        mmcnb.load(rewritten(header={name: value}))


@pytest.mark.parametrize("name", ["BaseEstimator", "OwnBasis", "load"])
def test_other_classes_are_refused(rewritten, name):
    with pytest.raises(
        InputError,
        match=rf"^[^\n]*odd contains a {name}, which this version does not have;",
    ):
        mmcnb.load(rewritten(header={"class": name}))


@pytest.mark.parametrize("degree", [1001, 10**15])
def test_a_degree_that_would_take_for_ever_is_refused(tmp_path, degree):
    X = make_blobs(60)
    model = mmcnb.SparseKernelMMC(
        kernel="poly", degree=2, n_init=1, random_state=0
    ).fit(X)
    model.save(tmp_path / "model")
    header, arrays = read_model(tmp_path / "model")
    header["model"]["kernel"]["degree"] = header["parameters"]["degree"] = degree
    write_model(tmp_path / "odd", header, arrays)
    with pytest.raises(InputError, match="degree"):
        mmcnb.load(tmp_path / "odd")
    with pytest.raises(
        InputError,
        match=r"degree=\d+ is out of range; give a whole number of at least 1 and",
    ):
        model.set_params(degree=degree).fit(X)
    assert model.set_params(degree=1000).plan(X).threads >= 1  # the remedy
