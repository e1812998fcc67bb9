import errno
import json
import zipfile
from unittest.mock import Mock

import numpy as np
import pytest

import mmcnb
from mmcnb.errors import InputError
from mmcnb.features.kernel import CallableKernel, Kernel, MultipleKernels
from mmcnb.features.model import Model, read_model, write_model
from mmcnb.features.rules import Hyperplane
from mmcnb.samples import open_samples
from mmcnb.samples.derived import Scaling
from mmcnb.stores.atomic import AtomicOutput
from tests.estimators.conftest import ESTIMATORS, make, make_blobs, make_sparse


@pytest.fixture(scope="module")
def X():
    return make_blobs(200)


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("scale", [None, "standard"])
@pytest.mark.parametrize("sparse", [False, True])
def test_model_read_back_predicts_the_same_bits(tmp_path, name, scale, sparse):
    X = make_sparse(200) if sparse else make_blobs(200)
    parameters = {} if name == "CPMMC" else {"gamma": "median"}
    model = make(name, scale=scale, **parameters).fit(X)
    model.save(tmp_path / "model")
    again = mmcnb.load(str(tmp_path / "model"))
    assert type(again) is type(model)
    assert again.get_params() == model.get_params()
    assert again.decision_function(X).tobytes() == model.decision_function(X).tobytes()
    assert again.predict(X).tobytes() == model.labels_.tobytes()
    for attribute in ("objective_", "rho_", "gamma_", "converged_", "report_", "n_features_in_"):
        assert getattr(again, attribute) == getattr(model, attribute)
    assert again.history_.drop(columns="gamma", errors="ignore").equals(
        model.history_.drop(columns="gamma", errors="ignore")
    )


def test_model_read_back_can_be_saved_and_fitted_again(tmp_path, X):
    model = make("SparseKernelMMC").fit(X)
    model.save(tmp_path / "first")
    again = mmcnb.load(tmp_path / "first")
    again.save(tmp_path / "second")
    assert mmcnb.load(tmp_path / "second").predict(X).tobytes() == model.labels_.tobytes()
    assert again.fit(X).labels_.tobytes() == model.labels_.tobytes()


def test_model_of_a_random_state_object_is_saved_without_it(tmp_path, X):
    model = make("CPMMC", random_state=np.random.RandomState(0)).fit(X)
    model.save(tmp_path / "model")
    assert mmcnb.load(tmp_path / "model").predict(X).tobytes() == model.labels_.tobytes()


def test_model_of_numpy_parameters_is_saved(tmp_path, X):
    # Parameters out of a grid are NumPy scalars.
    model = make("SparseKernelMMC", C=np.float64(5), n_init=np.int64(2), gamma=np.float32(0.5)).fit(X)
    model.save(tmp_path / "model")
    again = mmcnb.load(tmp_path / "model")
    assert (again.C, again.n_init, again.gamma) == (5.0, 2, 0.5)


@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_parameters_that_are_lists_of_numbers_are_kept(tmp_path, X, kind):
    shares = kind([0.5, 0.3, 0.2])
    model = mmcnb.UnsupervisedRLS(3, cluster_sizes=shares, n_init=2, random_state=0).fit(X)
    model.save(tmp_path / "model")
    again = mmcnb.load(tmp_path / "model")
    assert again.cluster_sizes == [0.5, 0.3, 0.2]
    others = {name: value for name, value in model.get_params().items() if name != "cluster_sizes"}
    assert again.get_params().items() >= others.items()
    assert again.fit(X).labels_.tobytes() == model.labels_.tobytes()


def model_of_several_kernels(X, *kernels):
    stack = MultipleKernels((Kernel("rbf", 0.5), *kernels), (None, *[np.array([1])] * len(kernels)))
    coef = np.random.default_rng(0).normal(size=3 * len(stack.kernels))
    weights = np.linspace(0.2, 0.8, len(stack.kernels))
    scaling = Scaling(X.mean(axis=0), X.std(axis=0))
    return Model(Hyperplane(coef, 0.25), stack, X[:3], scaling, kernel_weights=weights)


def test_model_of_several_kernels_is_read_back(tmp_path, X):
    model = model_of_several_kernels(X, Kernel("poly", 0.1, 2), Kernel("linear"))
    write_model(tmp_path / "model", {"model": model.to_dict()}, model.arrays())
    header, arrays = read_model(tmp_path / "model")
    again = Model.restore(arrays, header["model"])
    values, expected = (one.features(open_samples(X)).block(0, len(X)) for one in (again, model))
    assert expected.shape == (len(X), 9)
    assert values.tobytes() == expected.tobytes()
    assert again.kernel_weights.tobytes() == model.kernel_weights.tobytes()
    assert again.rule.coef.tobytes() == model.rule.coef.tobytes()


def test_model_of_a_kernel_that_is_a_function_is_not_saved(X):
    model = model_of_several_kernels(X, CallableKernel(np.dot, "mine"))
    with pytest.raises(
        InputError, match=r"^kernel mine is a function, which a model file cannot hold; .*\.$"
    ):
        model.to_dict()


@pytest.fixture(scope="module")
def model_file(tmp_path_factory, X):
    path = tmp_path_factory.mktemp("models") / "model"
    make("SparseKernelMMC", C=1.3, n_init=1, n_landmarks=5).fit(X).save(path)
    return path


@pytest.mark.parametrize("part", range(8))
def test_damaged_models_are_refused_in_one_sentence(tmp_path, model_file, X, part):
    whole = model_file.read_bytes()
    expected = mmcnb.load(model_file).decision_function(X[:9]).tobytes()
    rng = np.random.default_rng(part)
    ends = len(whole) - np.arange(part, 800, 8)  # the directory of the file, where every byte counts
    sentences = []
    for place in [*ends, *rng.integers(len(whole), size=30)]:
        spoiled = bytearray(whole)
        spoiled[place % len(whole)] ^= 1 << int(rng.integers(8))
        (tmp_path / "spoiled").write_bytes(spoiled)
        try:
            found = mmcnb.load(tmp_path / "spoiled").decision_function(X[:9]).tobytes()
        except InputError as error:
            sentences.append(str(error))
        else:
            assert found == expected  # the bit was in a part nobody reads
    assert len(sentences) > 30
    assert all("spoiled" in sentence and "\n" not in sentence for sentence in sentences)


def test_damaged_headers_of_arrays_are_refused_in_one_sentence(tmp_path, X):
    make("CPMMC").fit(X).save(tmp_path / "model")
    whole = (tmp_path / "model").read_bytes()
    first = whole.index(b"NUMPY")
    for place in range(first - 1, first + 120):
        for bit in (0, 3, 6):
            spoiled = bytearray(whole)
            spoiled[place] ^= 1 << bit
            (tmp_path / "spoiled").write_bytes(spoiled)
            with pytest.raises(InputError, match=r"^[^\n]*spoiled[^\n]*\.$"):
                mmcnb.load(tmp_path / "spoiled")


@pytest.mark.parametrize("length", [0, 1, 100, 1000, -1, -30])
def test_truncated_models_are_refused(tmp_path, X, length):
    make("SparseKernelMMC").fit(X).save(tmp_path / "model")
    (tmp_path / "short").write_bytes((tmp_path / "model").read_bytes()[:length])
    with pytest.raises(InputError, match=r"^[^\n]*short is no model of mmcnb, or it is damaged[^\n]*\.$"):
        mmcnb.load(tmp_path / "short")


def foreign(path, kind):
    if kind == "text":
        path.write_text("no model")
    elif kind == "npy":
        with path.open("wb") as file:
            np.save(file, np.zeros(3))
    elif kind == "npz":
        with path.open("wb") as file:
            np.savez(file, coef=np.zeros(3))
    elif kind == "zip":
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("a.txt", "text")
    elif kind == "json of another kind":
        with path.open("wb") as file:
            np.savez(file, header=np.frombuffer(b"[1, 2]", np.uint8))
    elif kind == "folder":
        path.mkdir()
    else:
        header = {"format": 1} if kind == "header without the rest" else {"format": 99}
        with path.open("wb") as file:
            np.savez(file, header=np.frombuffer(json.dumps(header).encode(), np.uint8))


@pytest.mark.parametrize(
    "kind",
    [
        "text",
        "npy",
        "npz",
        "zip",
        "json of another kind",
        "folder",
        "header without the rest",
        "newer format",
    ],
)
def test_foreign_files_are_refused_in_one_sentence(tmp_path, kind):
    foreign(tmp_path / "other", kind)
    with pytest.raises(InputError, match=r"^[^\n]*other[^\n]*\.$"):
        mmcnb.load(tmp_path / "other")


def test_missing_model_is_one_sentence(tmp_path):
    with pytest.raises(InputError, match=r"^there is no model at [^\n]*nowhere[^\n]*\.$"):
        mmcnb.load(tmp_path / "nowhere")


def test_saving_is_whole_or_not_at_all(tmp_path, X, monkeypatch):
    model = make("SparseKernelMMC").fit(X)
    model.save(tmp_path / "model")
    before = (tmp_path / "model").read_bytes()

    def full(file, **arrays):
        file.write(b"half a model")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mmcnb.stores.archive.np.savez", full)
    with pytest.raises(InputError, match=r"model could not be written, as the disk is full \([^\n]*\.$"):
        model.save(tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_an_error_while_a_part_is_written_names_the_output(tmp_path, X, monkeypatch):
    """A command writes its model in a hidden folder, beside its place."""
    model = make("CPMMC").fit(X)

    def fail(file, **arrays):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("mmcnb.stores.archive.np.savez", fail)
    with (
        pytest.raises(InputError, match=r"^[^\n]*could not be written \(Input/output error\)") as error,
        AtomicOutput(tmp_path / "out.model") as output,
    ):
        model.save(output.path)
    assert str(error.value).startswith(f"{tmp_path / 'out.model'} ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("lack", [MemoryError, KeyboardInterrupt])
def test_want_of_memory_is_no_damage(lack, tmp_path, X, monkeypatch):
    make("CPMMC").fit(X).save(tmp_path / "model")
    monkeypatch.setattr("mmcnb.stores.archive.read_member", Mock(side_effect=lack))
    with pytest.raises(lack):
        mmcnb.load(tmp_path / "model")


def test_a_model_that_cannot_be_read_says_why(tmp_path, X, monkeypatch):
    make("CPMMC").fit(X).save(tmp_path / "model")
    fault = OSError(errno.EIO, "Input/output error")
    monkeypatch.setattr("mmcnb.stores.archive.read_member", Mock(side_effect=fault))
    with pytest.raises(InputError, match=r"or it is damaged \(Input/output error\); [^\n]*\.$"):
        mmcnb.load(tmp_path / "model")


def test_saving_where_no_folder_is_is_one_sentence(tmp_path, X):
    with pytest.raises(InputError, match=r"^[^\n]*model: the folder [^\n]* does not exist: make it first\.$"):
        make("CPMMC").fit(X).save(tmp_path / "nowhere" / "model")


def test_saving_replaces_a_model_and_leaves_nothing_else(tmp_path, X):
    make("CPMMC").fit(X).save(tmp_path / "model")
    make("SparseKernelMMC").fit(X).save(tmp_path / "model")
    assert type(mmcnb.load(tmp_path / "model")) is mmcnb.SparseKernelMMC
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
