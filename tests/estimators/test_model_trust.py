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
    make("SparseKernelMMC", n_init=1, n_landmarks=5, n_jobs=1, memory_limit="2GiB").fit(make_blobs(80)).save(
        path
    )
    return path


def rewritten(path, target, change):
    """A file with sound checksums, whose header was changed."""
    header, arrays = read_model(path)
    change(header)
    write_model(target, header, arrays)
    return target


@pytest.fixture
def listener():
    """A port that somebody listens at, and whether anyone came."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.5)

        def came():
            try:
                server.accept()[0].close()
            except TimeoutError:
                return False
            return True

        yield f"tcp://127.0.0.1:{server.getsockname()[1]}", came


@pytest.mark.slow
@pytest.mark.parametrize("place", ["parameters", "header"])
def test_a_model_file_decides_nothing_about_whom_we_connect_to(model_file, tmp_path, listener, place):
    address, came = listener

    def change(header):
        (header["parameters"] if place == "parameters" else header)["engine"] = address

    path = rewritten(model_file, tmp_path / "hostile", change)
    if place == "parameters":
        with pytest.raises(InputError, match=r"^[^\n]*hostile gives SparseKernelMMC the parameter 'engine'"):
            mmcnb.load(path)
    else:
        model = mmcnb.load(path)
        assert model.engine is None
        assert model.predict(make_blobs(20)).shape == (20,)
    assert not came()


def test_the_command_does_not_connect_either(model_file, tmp_path, listener, capsys):
    from mmcnb.cli import main
    from mmcnb.stores import create_dense_store

    address, came = listener
    path = rewritten(
        model_file, tmp_path / "hostile", lambda header: header["parameters"].update(engine=address)
    )
    with create_dense_store(tmp_path / "rows.zarr", 3) as writer:
        writer.append(make_blobs(20))
    assert main(["predict", str(path), str(tmp_path / "rows.zarr"), "--labels", str(tmp_path / "out")]) == 2
    assert "do not trust this file" in capsys.readouterr().err
    assert not came()
    assert not (tmp_path / "out").exists()


def test_how_a_fit_was_run_is_not_in_its_file(model_file):
    header, _ = read_model(model_file)
    runtime = {"memory_limit", "n_jobs", "verbose", "engine", "checkpoint"}
    assert not runtime & set(header["parameters"])
    again = mmcnb.load(model_file)
    assert (again.memory_limit, again.n_jobs, again.engine, again.checkpoint) == (None,) * 4


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"checkpoint": "/somewhere"}, "the parameter 'checkpoint', which no model of this version has"),
        ({"memory_limit": "1GiB"}, "the parameter 'memory_limit', which no model of this version has"),
        ({"colour": "red"}, "the parameter 'colour', which no model of this version has"),
        ({"C": -1.0}, r"holds a parameter that cannot be: C=-1\.0 is out of range"),
        ({"kernel": "__import__"}, "holds a parameter that cannot be: kernel='__import__' is unknown"),
        ({"n_init": [1]}, r"holds a parameter that cannot be: n_init=\[1\] is out of range"),
        ({"random_state": "0"}, "has random_state='0', which is no seed"),
    ],
)
def test_parameters_are_those_of_the_class_and_of_its_values(model_file, tmp_path, parameters, sentence):
    path = rewritten(model_file, tmp_path / "odd", lambda header: header["parameters"].update(parameters))
    with pytest.raises(InputError, match=rf"^[^\n]*odd [^\n]*{sentence}[^\n]*\.$"):
        mmcnb.load(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [("objective", "low"), ("converged", 1.5), ("report", []), ("n_features_in", "3"), ("history", None)],
)
def test_fitted_attributes_have_their_types(model_file, tmp_path, name, value):
    path = rewritten(model_file, tmp_path / "odd", lambda header: header.update({name: value}))
    with pytest.raises(InputError, match=rf"^[^\n]*odd has {name}=[^\n]*\.$"):
        mmcnb.load(path)


@pytest.mark.parametrize("name", ["BaseEstimator", "OwnBasis", "SupportClusterMachine", "load"])
def test_other_classes_are_refused(model_file, tmp_path, name):
    path = rewritten(model_file, tmp_path / "odd", lambda header: header.update({"class": name}))
    with pytest.raises(InputError, match=rf"^[^\n]*odd contains a {name}, which this version does not have;"):
        mmcnb.load(path)


@pytest.mark.parametrize("degree", [1001, 10**9, 10**15])
def test_a_degree_that_would_take_for_ever_is_refused(tmp_path, degree):
    X = make_blobs(60)
    model = mmcnb.SparseKernelMMC(kernel="poly", degree=2, n_init=1, random_state=0).fit(X)
    model.save(tmp_path / "model")

    def change(header):
        header["model"]["kernel"]["degree"] = header["parameters"]["degree"] = degree

    path = rewritten(tmp_path / "model", tmp_path / "odd", change)
    with pytest.raises(InputError, match="degree"):
        mmcnb.load(path)
    with pytest.raises(
        InputError, match=r"degree=\d+ is out of range; give a whole number of at least 1 and"
    ):
        model.set_params(degree=degree).fit(X)
    assert model.set_params(degree=1000).plan(X).threads >= 1  # the remedy
