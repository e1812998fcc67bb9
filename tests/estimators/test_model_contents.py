"""Model files with sound checksums and wrong contents are refused, each with the name of the field."""

import io
import json
import os
import tracemalloc
import zipfile

import numpy as np
import pytest
import scipy.sparse

import mmcnb
from mmcnb.errors import InputError
from mmcnb.features.model import read_model, write_model
from tests.estimators.conftest import make_blobs

X = make_blobs(120)
MODELS = {
    "kernel": lambda: mmcnb.SparseKernelMMC(
        gamma=0.5, n_landmarks=6, n_init=1, scale="standard"
    ),
    "polynomial": lambda: mmcnb.SparseKernelMMC(kernel="poly", n_landmarks=6, n_init=1),
    "linear": lambda: mmcnb.CPMMC(),
    "least squares": lambda: mmcnb.UnsupervisedRLS(
        3, gamma=0.5, n_landmarks=6, n_init=1
    ),
    "several kernels": lambda: mmcnb.MultipleKernelClustering(2, n_init=1),
    "graph": lambda: mmcnb.MaximumMarginClustering(2, kernel="graph", noise="auto"),
    "margin": lambda: mmcnb.MaximumMarginClustering(2, kernel="rbf"),
    "axes": lambda: mmcnb.MaximumMarginClustering(2, kernel="graph"),
    "directions": lambda: mmcnb.MaximumMarginClustering(
        2, kernel="graph", metric="cosine"
    ),
}
WIDE = (
    np.random.default_rng(0).standard_normal((120, 60))
    + 6 * (np.arange(120) % 2)[:, None]
)
ROWS = {"axes": WIDE, "directions": scipy.sparse.csr_array(WIDE * (WIDE > 1))}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for name, new in MODELS.items():
        new().set_params(random_state=0).fit(ROWS.get(name, X)).save(folder / name)
    return folder


def halved(array):
    return array[: max(1, len(array) // 2)]


def spoilt(array):
    array = array.copy()
    array.flat[-1] = np.nan
    return array


def changed(place, value):
    """An array with another value at a place."""

    def change(array):
        array = array.copy()
        array[place] = value
        return array

    return change


TREE = [
    ("graph_pieces", changed(0, 10**6), "graph_pieces does not fit"),
    # some piece has no node
    (
        "graph_pieces",
        lambda a: 0 * a,
        "graph_pieces does not fit",
    ),
    ("graph_merges", changed((-1, 0), 10**6), "graph_merges does not fit"),
    # those above come first: a cycle
    (
        "graph_merges",
        lambda a: a[::-1],
        "graph_merges does not fit",
    ),
    ("graph_merges", lambda a: a[:, :1], "graph_merges does not fit"),
    ("graph_links", lambda a: -a, "graph_links does not fit"),
    ("graph_links", lambda a: a[::-1], "graph_links does not fit"),
]
ARRAYS = [
    (
        "kernel",
        "donor_unit",
        halved,
        "donor_rows and the scales of its columns differ in shape",
    ),
    ("kernel", "donor_rows", spoilt, "donor_rows has values that are not finite"),
    ("kernel", "coef", halved, r"coef has shape \(3,\), but \(6,\) was expected"),
    ("kernel", "coef", spoilt, "coef has values that are not finite"),
    ("kernel", "coef", lambda a: a.astype(">f8"), "coef has shape .* >f8"),
    (
        "kernel",
        "basis",
        lambda a: a[:, :1],
        r"basis has shape \(6, 1\) for rows of 3 columns",
    ),
    (
        "kernel",
        "basis",
        lambda a: a[:4],
        r"coef has shape \(6,\), but \(4,\) was expected",
    ),
    (
        "kernel",
        "basis",
        lambda a: a.astype(object).astype("S4"),
        r"basis has shape .* \|S4",
    ),
    ("kernel", "mean", halved, "mean has shape"),
    (
        "kernel",
        "mean",
        changed(0, -1e200),
        "mean has values .* or whose squares overflow",
    ),
    ("kernel", "deviation", lambda a: -a, "deviation is negative"),
    ("linear", "coef", halved, r"coef has shape \(1,\), but \(3,\) was expected"),
    (
        "least squares",
        "coef",
        lambda a: a[:, :2],
        r"coef has shape \(6, 2\), but \(6, 3\) was expected",
    ),
    ("least squares", "ridge_matrix", halved, "ridge_matrix has shape"),
    ("several kernels", "kernel_weights", halved, "kernel_weights has shape"),
    ("graph", "graph_starts", lambda a: a + 1, "graph_starts does not fit"),
    ("graph", "graph_labels", halved, "graph_labels does not fit"),
    ("graph", "graph_search", lambda a: a * 10**6, "graph_search does not fit"),
    ("graph", "graph_search", changed(2, 10**9), "coef has shape"),  # of the clusters
    ("graph", "graph_nodes", lambda a: a[:, :1], "graph_centres does not fit"),
    (
        "graph",
        "coef",
        lambda a: a[1:],
        "coef does not number the clusters of the nodes",
    ),
    (
        "graph",
        "coef",
        lambda a: 0 * a,
        "coef does not number the clusters of the nodes",
    ),
    (
        "graph",
        "offset",
        lambda a: np.r_[a, 0.0],
        "coef does not number the clusters of the nodes",
    ),
    ("graph", "graph_labels", lambda a: a + 1, "graph_labels does not fit"),
    ("graph", "graph_offsets", halved, "graph_offsets does not fit"),
    ("graph", "graph_offsets", changed(0, -1e100), "graph_offsets does not fit"),
    ("graph", "graph_bound", lambda a: a - 1e100, "graph_bound does not fit"),
    ("graph", "graph_threshold", lambda a: a + 1e100, "graph_threshold does not fit"),
    ("graph", "graph_threshold", halved, "graph_threshold does not fit"),
    *(("margin", *row) for row in TREE),
    ("axes", "graph_axes", lambda a: a[1:], "graph_axes does not fit"),
    ("directions", "graph_indptr", lambda a: a + 1, "graph_indptr does not fit"),
    ("directions", "graph_shape", lambda a: [*a, 0, 9], "graph_shape does not fit"),
]


@pytest.mark.parametrize(("model", "name", "change", "match"), ARRAYS)
def test_arrays_fit_one_another(files, tmp_path, model, name, change, match):
    header, arrays = read_model(files / model)
    arrays[name] = change(arrays[name])
    write_model(tmp_path / "odd", header, arrays)
    with pytest.raises(
        InputError, match=rf"^[^\n]*odd contains an invalid model: {match}[^\n]*\.$"
    ):
        mmcnb.load(tmp_path / "odd")


@pytest.mark.parametrize(
    "layers", [None, [3], [{"n_clusters": "2"}], [{"n_clusters": 2, "taken": 1}]]
)
def test_layers_that_are_none_are_refused(files, tmp_path, layers):
    header, arrays = read_model(files / "graph")
    header["report"]["layers"] = layers
    write_model(tmp_path / "odd", header, arrays)
    with pytest.raises(InputError, match=r"^[^\n]*odd [^\n]*layers[^\n]*\.$"):
        mmcnb.load(tmp_path / "odd")


CANNOT_BE = "contains an invalid model"


@pytest.mark.parametrize(
    ("model", "name", "match"),
    [
        ("kernel", "coef", f"{CANNOT_BE}: coef is missing"),
        ("kernel", "basis", f"{CANNOT_BE}: kernel or basis is missing"),
        ("kernel", "mean", f"{CANNOT_BE}: mean or deviation is missing"),
        ("least squares", "ridge_matrix", "has no ridge_matrix, which is invalid"),
        (
            "several kernels",
            "kernel_weights",
            r"[^\n]*kernel_weights has shape \(\), but \(5,\) was expected",
        ),
        ("graph", "graph_pieces", f"(is not a complete model|{CANNOT_BE})"),
        ("graph", "graph_offsets", f"(is not a complete model|{CANNOT_BE})"),
    ],
)
def test_a_model_without_one_of_its_arrays_is_refused(
    files, tmp_path, model, name, match
):
    header, arrays = read_model(files / model)
    del arrays[name]
    write_model(tmp_path / "odd", header | {"arrays": sorted(arrays)}, arrays)
    with pytest.raises(InputError, match=rf"^[^\n]*odd {match}[^\n]*\.$"):
        mmcnb.load(tmp_path / "odd")


def test_an_array_of_no_model_is_refused(files, tmp_path):
    header, arrays = read_model(files / "kernel")
    arrays["../../coef"] = arrays["coef"]
    write_model(tmp_path / "odd", header | {"arrays": sorted(arrays)}, arrays)
    with pytest.raises(
        InputError,
        match=r"invalid model: '\.\./\.\./coef' is not the name of a model array",
    ):
        mmcnb.load(tmp_path / "odd")


HEADERS = [
    ("kernel", ("model", "kernel", "name"), "sigmoid", "kernel is named 'sigmoid'"),
    (
        "kernel",
        ("model", "kernel", "gamma"),
        float("nan"),
        "gamma of the kernel is nan",
    ),
    ("kernel", ("model", "kernel", "degree"), 10**30, "degree of the kernel is 1000"),
    ("kernel", ("model", "feature_dtype"), "float16", "feature_dtype is 'float16'"),
    ("kernel", ("model", "is_unit"), "yes", "is_unit is 'yes'"),
    (
        "kernel",
        ("n_features_in",),
        4,
        r"mean has shape \(3,\), but \(4,\) was expected",
    ),
    (
        "linear",
        ("n_features_in",),
        2,
        r"coef has shape \(3,\), but \(2,\) was expected",
    ),
    ("linear", ("n_features_in",), True, "n_features_in=True, which is invalid"),
    (
        "linear",
        ("feature_names_in",),
        ["a", "b"],
        "feature_names has 2 entries for 3 columns",
    ),
    ("linear", ("history",), {"a": [1], "b": [1, 2]}, "is not a complete model"),
    ("linear", ("report", "warnings"), [1], r"has warnings=\[1\]"),
    (
        "least squares",
        ("parameters", "n_clusters"),
        4,
        "n_clusters=4 for a rule of 3 clusters",
    ),
    ("least squares", ("report", "sizes"), [60, 60], "2 sizes for 3 clusters"),
    ("several kernels", ("kernel_names",), ["one"], r"has kernel_names=\['one'\]"),
    (
        "several kernels",
        ("model", "kernel", "columns"),
        [[7]] + [None] * 4,
        "columns of a kernel reach 7",
    ),
    (
        "several kernels",
        ("model", "kernel", "columns"),
        [[10**30]] + [None] * 4,
        "is not a complete model",
    ),
    ("linear", ("class",), "a\nb", r"contains a a\\nb, which"),
    ("linear", ("parameters",), {"x" * 10**6: 1}, "gives CPMMC the parameter 'xxx"),
    ("linear", ("objective",), float("nan"), "has objective=nan"),
    ("least squares", ("report", "sizes"), [130, -10, 0], "3 sizes for 3 clusters"),
    ("graph", ("report",), {}, "has no layers or no sizes"),
    ("graph", ("report", "noise"), "many", "has noise='many'"),
    ("graph", ("n_clusters",), 5, "n_clusters_=5 for a rule of 2 clusters"),
    ("graph", ("report", "trust"), "high", "has trust="),
]


@pytest.mark.parametrize(("model", "field", "value", "match"), HEADERS)
def test_headers_fit_their_arrays(files, tmp_path, model, field, value, match):
    header, arrays = read_model(files / model)
    holder = header
    for part in field[:-1]:
        holder = holder[part]
    holder[field[-1]] = value
    write_model(tmp_path / "odd", header, arrays)
    with pytest.raises(
        InputError, match=rf"^[^\n]*odd[^\n]*{match}[^\n]*\.$"
    ) as raised:
        mmcnb.load(tmp_path / "odd")
    assert len(str(raised.value)) < 600


@pytest.mark.parametrize(
    ("model", "name", "factor"),
    [("kernel", "mean", 1e100), ("polynomial", "basis", 1e30)],
)
def test_numbers_that_overflow_with_the_rows_are_one_sentence(
    files, tmp_path, model, name, factor
):
    """Nothing is known of the rows when a model is loaded; in float32 a square of 1e30 is infinite."""
    header, arrays = read_model(files / model)
    arrays[name] = factor * (arrays[name] + 1)
    write_model(tmp_path / "odd", header, arrays)
    odd = mmcnb.load(tmp_path / "odd")
    for ask in (odd.predict, odd.decision_function, odd.explain):
        with pytest.raises(
            InputError,
            match=r"^[^\n]*: its sums or products overflow \(column \d[^\n]*\); [^\n]*\.$",
        ):
            ask(X.astype(np.float32))


def test_a_page_of_a_model_without_reasons_is_written(files, tmp_path):
    header, arrays = read_model(files / "graph")
    header["report"] |= {"trust": {"a": 1}, "number": {"a": 1}}
    write_model(tmp_path / "odd", header, arrays)
    mmcnb.load(tmp_path / "odd").write_report(X, tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8").endswith("</html>\n")


def test_a_file_that_would_grow_when_it_is_read_is_refused(files, tmp_path):
    header, arrays = read_model(files / "linear")
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    np.savez_compressed(
        tmp_path / "bomb.npz", header=text, **arrays | {"coef": np.zeros(2**24)}
    )
    with (
        zipfile.ZipFile(files / "linear") as whole,
        zipfile.ZipFile(tmp_path / "claim", "w") as out,
    ):
        for name in whole.namelist():
            content = io.BytesIO()
            shape = {"descr": "<f8", "fortran_order": False, "shape": (2**40,)}
            np.lib.format.write_array_header_1_0(content, shape)
            out.writestr(
                name, content.getvalue() if name == "coef.npy" else whole.read(name)
            )
    tracemalloc.start()
    for name in ("bomb.npz", "claim"):
        with pytest.raises(
            InputError,
            match=rf"^[^\n]*{name} is not a model of mmcnb, or it is damaged",
        ):
            mmcnb.load(tmp_path / name)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50 * 2**20


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_no_model(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="pipe is a pipe, not a regular file"):
        mmcnb.load(tmp_path / "pipe")


def test_a_header_nested_beyond_reason_is_one_sentence(files, tmp_path):
    arrays = read_model(files / "linear")[1]
    with (tmp_path / "deep").open("wb") as file:
        np.savez(file, header=np.frombuffer(b"[" * 10**5, np.uint8), **arrays)
    with pytest.raises(InputError, match=r"^[^\n]*deep is not a model of mmcnb"):
        mmcnb.load(tmp_path / "deep")
