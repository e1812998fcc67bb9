"""A fitted model is saved to a file and read back, whole or not at all; damage is noticed."""

import json
import os
import zipfile
from contextlib import contextmanager

import numpy as np
import pytest

import mmcnb
from mmcnb.errors import InputError
from mmcnb.stores.atomic import AtomicOutput
from tests.estimators.conftest import make_blobs, make_sparse
from tests.estimators.every import NAMES, make_any
from tests.estimators.several_kernels import one_time

X = make_blobs(120) * [1, 100, 0.01]
PARAMETERS = {
    "MultipleKernelClustering": {
        "kernels": ["rbf", ["poly", {"gamma": 0.1, "degree": 2}], "linear"],
        "columns": [None, [1], [0, 2]],
    },
    "EvolutionaryMMC": {"n_landmarks": 20},
}


def saved(path, name="CPMMC", rows=X, **parameters):
    model = make_any(
        name, **{"n_clusters": 2, "n_init": 2} | PARAMETERS.get(name, {}) | parameters
    ).fit(rows)
    model.save(path)
    return model


@pytest.mark.parametrize(
    ("name", "scale", "rows"),
    [(name, "standard", X) for name in NAMES]
    + [
        (name, None, make_sparse(120))
        for name in ("CPMMC", "SparseKernelMMC", "MaximumMarginClustering")
    ],
)
def test_a_model_that_is_read_back_is_the_same(tmp_path, name, scale, rows):
    model = saved(tmp_path / "model", name, rows, scale=scale)
    again = mmcnb.load(str(tmp_path / "model"))
    assert type(again) is type(model)
    assert again.get_params() == model.get_params()
    assert again.predict(rows).tobytes() == model.labels_.tobytes()
    for method in ("decision_function", "transform"):
        if hasattr(model, method):
            assert (
                getattr(again, method)(rows).tobytes()
                == getattr(model, method)(rows).tobytes()
            )
    fitted = {name for name in vars(model) if name.endswith("_")} - {
        "labels_",
        "model_",
        "history_",
    }
    for attribute in fitted | {"n_features_in_"}:
        assert np.array_equal(getattr(again, attribute), getattr(model, attribute)), (
            attribute
        )
    assert again.history_.drop(columns="gamma", errors="ignore").equals(
        model.history_.drop(columns="gamma", errors="ignore")
    )
    again.save(tmp_path / "second")
    assert (
        mmcnb.load(tmp_path / "second").predict(rows).tobytes()
        == model.labels_.tobytes()
    )
    assert again.fit(rows).labels_.tobytes() == model.labels_.tobytes()


@pytest.mark.parametrize("kernel", ["graph", "rbf"])
def test_directions_of_scaled_columns_are_read_back(tmp_path, kernel):
    model = mmcnb.MaximumMarginClustering(
        2, metric="cosine", scale="standard", kernel=kernel, random_state=0
    ).fit(X)
    model.save(tmp_path / "model")
    again = mmcnb.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), model.labels_)


@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_parameters_of_numpy_are_kept_as_plain_ones_and_generators_are_not(
    tmp_path, kind
):
    shares = kind([0.5, 0.3, 0.2])
    numbers = {
        "n_init": np.int64(2),
        "gamma": np.float32(0.5),
        "random_state": np.random.RandomState(0),
    }
    model = saved(
        tmp_path / "model",
        "UnsupervisedRLS",
        n_clusters=3,
        cluster_sizes=shares,
        **numbers,
    )
    again = mmcnb.load(tmp_path / "model")
    assert again.predict(X).tobytes() == model.labels_.tobytes()
    assert (again.cluster_sizes, again.n_init, again.gamma) == ([0.5, 0.3, 0.2], 2, 0.5)
    assert again.random_state is None


def test_a_kernel_that_is_a_function_is_not_saved(tmp_path):
    sentence = r"^kernel one_time is a function, which a model file cannot store; .*\.$"
    with pytest.raises(InputError, match=sentence):
        saved(
            tmp_path / "model",
            "MultipleKernelClustering",
            kernels=[one_time, "linear"],
            columns=None,
        )
    assert list(tmp_path.iterdir()) == []


# -- damage ----------------------------------------------------------------------------


def test_a_flipped_bit_is_noticed_or_changes_nothing(tmp_path):
    model = saved(tmp_path / "model", "SparseKernelMMC", n_landmarks=5)
    whole = (tmp_path / "model").read_bytes()
    expected = model.decision_function(X[:9]).tobytes()
    rng = np.random.default_rng(0)
    directory = len(whole) - np.arange(0, 800, 6)
    header_of_an_array = whole.index(b"NUMPY") - 1 + np.arange(0, 120, 2)
    sentences = []
    for place in [*directory, *header_of_an_array, *rng.integers(len(whole), size=100)]:
        spoiled = bytearray(whole)
        spoiled[place % len(whole)] ^= 1 << int(rng.integers(8))
        (tmp_path / "spoiled").write_bytes(spoiled)
        try:
            decision_values = (
                mmcnb.load(tmp_path / "spoiled").decision_function(X[:9]).tobytes()
            )
        except InputError as error:
            sentences.append(str(error))
        else:
            assert decision_values == expected
            assert place not in header_of_an_array
    assert len(sentences) > 200
    assert all("spoiled" in sentence and "\n" not in sentence for sentence in sentences)


@pytest.mark.parametrize("length", [0, 1, 100, 1000, -1, -30])
def test_truncated_models_are_refused(tmp_path, length):
    saved(tmp_path / "model")
    (tmp_path / "short").write_bytes((tmp_path / "model").read_bytes()[:length])
    with pytest.raises(
        InputError,
        match=r"^[^\n]*short is not a model of mmcnb, or it is damaged[^\n]*\.$",
    ):
        mmcnb.load(tmp_path / "short")


def write_zip(path):
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("a.txt", "text")


def write_header(header):
    def write(path):
        text = np.frombuffer(json.dumps(header).encode(), np.uint8)
        with path.open("wb") as file:
            np.savez(file, header=text)

    return write


FOREIGN = {
    "text": (
        lambda path: path.write_text("no model"),
        "is not a model of mmcnb, or it is damaged",
    ),
    "a zip": (write_zip, "is not a model of mmcnb, or it is damaged"),
    "a list": (write_header([1, 2]), "is not a model of mmcnb, or it is damaged"),
    "a folder": (lambda path: path.mkdir(), "is a folder"),
    "a header without the rest": (
        write_header({"format": 3}),
        "is not a complete model of mmcnb",
    ),
    "a newer format": (
        write_header({"format": 99}),
        "has model format 99, but this version reads format 3",
    ),
}


@pytest.mark.parametrize("case", FOREIGN)
def test_foreign_files_are_refused_in_one_sentence(tmp_path, case):
    write, sentence = FOREIGN[case]
    write(tmp_path / "other")
    with pytest.raises(InputError, match=rf"^[^\n]*other {sentence}[^\n]*\.$"):
        mmcnb.load(tmp_path / "other")


def test_no_model_and_no_folder_are_named(tmp_path):
    with pytest.raises(
        InputError, match=r"^there is no model at [^\n]*nowhere[^\n]*\.$"
    ):
        mmcnb.load(tmp_path / "nowhere")
    with pytest.raises(
        InputError,
        match=r"^[^\n]*model: the folder [^\n]* does not exist: create it first\.$",
    ):
        saved(tmp_path / "nowhere" / "model")


# -- saving ----------------------------------------------------------------------------


posix = pytest.mark.skipif(os.name == "nt", reason="this system limits no file")


@contextmanager
def files_of_at_most(n_bytes):
    """The system refuses to write more to any file, as a full disk does."""
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@posix
def test_saving_is_whole_or_not_at_all(tmp_path):
    model = saved(tmp_path / "model")
    before = (tmp_path / "model").read_bytes()
    sentence = r"^[^\n]*model could not be written, because the disk is full \(File too large\)[^\n]*\.$"
    with files_of_at_most(500), pytest.raises(InputError, match=sentence):
        model.save(tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    saved(tmp_path / "model", "SparseKernelMMC")
    assert type(mmcnb.load(tmp_path / "model")) is mmcnb.SparseKernelMMC
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@posix
def test_an_error_while_a_hidden_part_is_written_names_the_output(tmp_path):
    """A command writes its model in a hidden folder, beside its place."""
    model = saved(tmp_path / "first")
    with (
        pytest.raises(
            InputError,
            match=r"^[^\n]*out\.model could not be written, because the disk is full \(File too large\)",
        ) as error,
        AtomicOutput(tmp_path / "out.model") as output,
        files_of_at_most(500),
    ):
        model.save(output.path)
    assert str(error.value).startswith(f"{tmp_path / 'out.model'} ")
    assert [path.name for path in tmp_path.iterdir()] == ["first"]
