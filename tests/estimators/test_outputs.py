"""Clusters as frames, tables and columns of AnnData: the same figures, whatever holds them."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import zarr

import mmcnb
from mmcnb.datasets import make_shape
from mmcnb.errors import InputError
from mmcnb.plotting import ClusterDisplay
from mmcnb.samples import GROUP_ROWS
from mmcnb.stores import convert, create_dense_store
from tests.estimators.conftest import make_blobs
from tests.estimators.front_door import InterruptedRows, front_door

ROWS = 5000  # more than one block


@pytest.fixture(scope="module")
def X():
    return make_shape("two-moons", ROWS, random_state=0)[0].astype(np.float32)


@pytest.fixture(scope="module")
def two(X):
    return front_door(2, n_nodes=300).fit(X)


@pytest.fixture(scope="module")
def three(X):
    return mmcnb.UnsupervisedRLS(3, n_init=2, sample_size=300, random_state=0).fit(X)


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def read_table(path):
    frame = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    return frame.set_index(frame.columns[0])


def labels_at(path, X):
    """Labels of rows as a figure takes them from a file."""
    labels = ClusterDisplay.from_predictions(X, path).labels
    plt.close("all")
    return labels


def test_the_frame_has_the_labels_and_what_they_follow_from(X, two, three):
    margins = np.abs(np.diff(two.decision_function(X)))[:, 0]
    np.testing.assert_array_equal(two.to_frame(X)["margin"], margins)
    frame = three.to_frame(X)
    scores = three.decision_function(X)
    assert frame.dtypes.to_dict() == {
        "cluster": np.dtype("int32"),
        "margin": np.dtype("float64"),
    }
    np.testing.assert_array_equal(frame["cluster"], three.labels_)
    best = scores[np.arange(ROWS), three.labels_]
    scores[np.arange(ROWS), three.labels_] = -np.inf
    np.testing.assert_array_equal(frame["margin"], best - scores.max(axis=1))


def test_without_rows_the_frame_has_the_labels_of_the_fit(X, two, tmp_path):
    pd.testing.assert_frame_equal(two.to_frame(), two.to_frame(X)[["cluster"]])
    two.save(tmp_path / "model")
    with pytest.raises(
        InputError,
        match=r"^this model does not store the labels [^\n]*pass the rows to to_frame\.$",
    ):
        mmcnb.load(tmp_path / "model").to_frame()


@pytest.mark.parametrize(
    ("ending", "form"), [("csv", "store"), ("parquet", "sparse"), ("CSV", "memory")]
)
def test_a_table_has_the_figures_of_the_frame(ending, form, X, two, tmp_path):
    rows = {
        "memory": X,
        "store": tmp_path / "rows.zarr",
        "sparse": scipy.sparse.csr_array(X),
    }[form]
    zarr.create_array(tmp_path / "rows.zarr", data=X, chunks=(700, 2))
    out = tmp_path / f"labels.{ending}"
    assert two.predict(rows, out=out) is None
    table = read_table(out)
    assert table.index.name == "row"
    assert table.index.tolist() == list(range(ROWS))
    pd.testing.assert_frame_equal(
        table,
        two.to_frame(rows),
        check_dtype=False,
        check_names=False,
        check_index_type=False,
    )
    np.testing.assert_array_equal(labels_at(out, X), two.labels_)


@pytest.mark.slow
def test_a_table_on_a_cluster_is_that_of_threads(X, two, tmp_path, dask_client):
    with create_dense_store(tmp_path / "rows.zarr", 2) as writer:
        writer.append(X)
    for name, engine in {"threads": None, "cluster": dask_client(2)}.items():
        with mmcnb.config(engine=engine):
            two.predict(tmp_path / "rows.zarr", out=tmp_path / f"{name}.parquet")
    pd.testing.assert_frame_equal(
        *(
            pd.read_parquet(tmp_path / f"{name}.parquet")
            for name in ("threads", "cluster")
        )
    )


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize(
    "index",
    [
        pd.Index([f"r,{i}" for i in range(40)], name="customer"),
        pd.Index([1, "a"] * 20, dtype=object),
        pd.Index(np.arange(40)[::-1], name="cluster"),
        pd.Index(np.arange(40)[::-1], name="row"),
    ],
    ids=["named", "mixed", "cluster", "row"],
)
def test_rows_keep_the_index_of_their_frame(index, ending, X, three, tmp_path):
    frame = pd.DataFrame(X[:40], index=index)
    pd.testing.assert_index_equal(three.to_frame(frame).index, index, exact=False)
    three.predict(frame, out=tmp_path / f"l.{ending}")
    table = read_table(tmp_path / f"l.{ending}")
    assert table.index.name == ("customer" if index.name == "customer" else "index")
    assert list(map(str, table.index)) == list(map(str, index))
    np.testing.assert_array_equal(
        labels_at(tmp_path / f"l.{ending}", X[:40]), three.labels_[:40]
    )


@pytest.mark.parametrize("kind", [str, int])
def test_rows_keep_the_names_that_their_store_keeps(kind, X, three, tmp_path):
    many = np.resize(X, (GROUP_ROWS + 300, 2))
    names = [kind(row) for row in range(7, len(many) + 7)]
    with create_dense_store(tmp_path / "rows.zarr", 2) as writer:
        for start in range(0, len(many), 50_000):
            writer.append(many[start : start + 50_000])
            writer.append_index(np.array(names[start : start + 50_000]))
    three.predict(tmp_path / "rows.zarr", out=tmp_path / "l.parquet")
    table = read_table(tmp_path / "l.parquet")
    frame = three.to_frame(tmp_path / "rows.zarr")
    assert table.index.name == "index"
    assert table.index.tolist() == frame.index.tolist() == names
    labels = labels_at(tmp_path / "l.parquet", tmp_path / "rows.zarr")
    np.testing.assert_array_equal(frame["cluster"], labels)
    table[::-1].reset_index().to_parquet(tmp_path / "turned.parquet")
    turned = labels_at(tmp_path / "turned.parquet", tmp_path / "rows.zarr")
    np.testing.assert_array_equal(turned, labels)
    table[1:].reset_index().to_parquet(tmp_path / "fewer.parquet")
    with pytest.raises(
        InputError,
        match=rf"has other rows than [^\n]*it has no row {names[0]} \(index\); ",
    ):
        labels_at(tmp_path / "fewer.parquet", tmp_path / "rows.zarr")


def test_other_endings_are_zarr_or_refused(X, three, tmp_path):
    for name in ("labels", "labels.zarr"):
        three.predict(X, out=tmp_path / name)
        np.testing.assert_array_equal(
            zarr.open_array(tmp_path / name, mode="r")[:], three.labels_
        )
        np.testing.assert_array_equal(labels_at(tmp_path / name, X), three.labels_)
    for name in ("labels.txt", "labels.csv.gz"):
        with pytest.raises(
            InputError,
            match=r"^[^\n]* give a path that ends with \.csv, \.parquet or \.zarr\.$",
        ):
            three.predict(X, out=tmp_path / name)
    assert names_in(tmp_path) == ["labels", "labels.zarr"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_table_appears_whole_or_not_at_all(ending, X, three, tmp_path):
    path = tmp_path / f"l.{ending}"
    rows = np.resize(X, (2 * GROUP_ROWS, 2))
    for n_reads in (0, 1):
        with pytest.raises(KeyboardInterrupt):
            three.predict(InterruptedRows(rows, n_reads), out=path)
        assert names_in(tmp_path) == []
    three.predict(X, out=path)
    before = path.read_bytes()
    with pytest.raises(InputError, match="exists already"):
        three.predict(X, out=path)
    assert path.read_bytes() == before
    assert names_in(tmp_path) == [f"l.{ending}"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"a,b\n1,2\n", "has no column of labels; name one of a, b"),
        (b"cluster,b\n1,2\n,3\n", "row 1 has no cluster; give one value a row"),
        (b"row,cluster\n1,0\n2,1\n", r"it has no row 0 \(row\)"),
        (b"row,cluster\n0,0\n0,1\n", r"has the row 0 twice \(row\)"),
        (
            b"file,row,cluster\na,1,0\na,0,1\n",
            'the column "row" does not increase; sort the table by it',
        ),
        (b"cluster,b\n1\n", "this header has 2 names, but rows below it have 1 cells"),
        (b"", "has no rows"),
        (
            b"cluster\n0.5\n1\n",
            r"has numbers such as 0\.5; give whole numbers or names",
        ),
        (
            b"cluster\n0\n1\n2\n",
            "has 3 values and X has 2 rows; give one label for each row, in the order of the rows",
        ),
    ],
)
def test_tables_that_hold_no_labels_are_refused(text, sentence, X, tmp_path):
    (tmp_path / "t.csv").write_bytes(text)
    with pytest.raises(InputError, match=rf"^[^\n]*t\.csv[^\n]*{sentence}[^\n]*\.$"):
        labels_at(tmp_path / "t.csv", X[:2])


@pytest.mark.parametrize(
    "text",
    [
        "cluster\n1\n\n0\n",
        "a\n1\n0\n",
        "b,class,row\n7,1,0\n8,0,1\n",
        "row,cluster\n1,0\n0,1\n",
        "file,row,cluster\na,4,1\nb,0,0\n",
        "row,class,wörd\n1,0,a\n0,1,b\n",
    ],
)
def test_labels_are_in_the_column_of_clusters_or_classes_or_the_only_one(
    text, X, tmp_path
):
    for encoding in ("utf-8", "cp1252"):
        (tmp_path / "t.csv").write_text(text, encoding)
        assert labels_at(tmp_path / "t.csv", X[:2]).tolist() == [1, 0]


def test_labels_of_named_rows_may_include_other_rows(X, tmp_path):
    frame = pd.DataFrame(X[:4], index=pd.Index([*"qrst"], name="key"))
    (tmp_path / "t.csv").write_text("key,cluster\nt,3\ns,2\nr,1\nq,0\n")
    assert labels_at(tmp_path / "t.csv", frame).tolist() == [0, 1, 2, 3]
    assert labels_at(tmp_path / "t.csv", frame.iloc[[2, 0]]).tolist() == [2, 0]


def test_a_frame_of_polars_gives_one(X, two):
    polars = pytest.importorskip("polars")
    columns = {"a": X[:, 0], "b": X[:, 1]}
    rows = polars.DataFrame(columns)
    model = front_door(2, n_nodes=300).fit(rows)
    frame = model.to_frame(rows)
    assert isinstance(frame, polars.DataFrame)
    pd.testing.assert_frame_equal(
        frame.to_pandas(), model.to_frame(pd.DataFrame(columns))
    )
    np.testing.assert_array_equal(frame["cluster"], two.labels_)


# AnnData

anndata = pytest.importorskip("anndata", reason="anndata is an extra")


@pytest.fixture
def cells():
    X, y = make_shape("two-moons", 300, random_state=0)
    elements = {
        "layers": {"counts": scipy.sparse.csr_matrix(np.abs(X))},
        "obsm": {"X_pca": X},
    }
    return anndata.AnnData(
        np.abs(X),
        obs=pd.DataFrame({"y": y}, index=[f"cell{i}" for i in range(300)]),
        **elements,
    )


def test_annotate_writes_what_scanpys_users_expect_and_a_file_keeps_it(cells, tmp_path):
    assert (
        mmcnb.annotate(
            cells,
            2,
            element="obsm/X_pca",
            noise=0.05,
            probabilities=True,
            random_state=0,
        )
        is None
    )
    expected = front_door(2, noise=0.05).fit(cells.obsm["X_pca"])
    clusters = cells.obs["mmcnb"]
    assert clusters.cat.categories.tolist() == ["0", "1"]
    assert not clusters.cat.ordered
    # noise has no category
    np.testing.assert_array_equal(clusters.cat.codes, expected.labels_)
    assert 0 < clusters.isna().sum() < 30
    np.testing.assert_array_equal(
        cells.obs["mmcnb_margin"], expected.to_frame(cells.obsm["X_pca"])["margin"]
    )
    shares = expected.predict_proba(cells.obsm["X_pca"])
    np.testing.assert_array_equal(cells.obsm["mmcnb_probabilities"], shares)
    facts = cells.uns["mmcnb"]
    assert facts["objective"] == expected.objective_
    assert (
        facts["trust"].pop("columns").tolist()
        == expected.report_["trust"].pop("columns")
        == []
    )
    assert facts["trust"] == expected.report_["trust"]
    assert (
        facts["params"].items()
        >= {"element": "obsm/X_pca", "n_clusters": 2, "random_state": 0}.items()
    )
    cells.write_h5ad(tmp_path / "cells.h5ad")
    again = anndata.read_h5ad(tmp_path / "cells.h5ad")
    assert again.obs["mmcnb"].equals(clusters)
    assert again.uns["mmcnb"]["trust"] == facts["trust"]
    assert again.uns["mmcnb"]["params"] == facts["params"]


def test_annotate_writes_the_other_layers():
    X = np.r_[make_blobs(100), make_blobs(100) + 60].astype(np.float32)
    with warnings.catch_warnings():  # of anndata, about its next version
        warnings.simplefilter("ignore")
        cells = anndata.AnnData(X)
    mmcnb.annotate(cells, random_state=0)
    model = front_door().fit(X)
    others = model.layers_[~model.layers_["taken"]]
    assert len(others) > 0
    names = [name for name in cells.obs if "layer" in name]
    assert names == [f"mmcnb_layer_{k}" for k in others["n_clusters"]]
    for number, k in others["n_clusters"].items():
        layer = cells.obs[f"mmcnb_layer_{k}"]
        assert layer.cat.categories.tolist() == [str(one) for one in range(k)]
        np.testing.assert_array_equal(layer.astype(int), model.predict(X, layer=number))


def test_a_second_annotation_replaces_all_of_the_first():
    X = np.r_[make_blobs(100), make_blobs(100) + 60].astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cells = anndata.AnnData(X, obsm={"line": X[:, :1]})
    cells.obs["mmcnb_layers"] = "a column of the user"
    cells.obs["other_layer_2"] = "another"
    mmcnb.annotate(cells, probabilities=True, random_state=0)
    assert any("mmcnb_layer_" in name for name in cells.obs)
    mmcnb.annotate(
        cells, element="obsm/line", estimator=mmcnb.CPMMC(n_init=1, random_state=0)
    )
    names = ["mmcnb_layers", "other_layer_2", "mmcnb", "mmcnb_margin"]
    assert cells.obs.columns.tolist() == names
    assert list(cells.obsm) == ["line"]
    assert cells.uns["mmcnb"]["params"]["method"] == "CPMMC"


@pytest.mark.parametrize("ending", ["h5ad", "zarr"])
def test_an_annotation_that_was_on_disk_is_replaced(ending, tmp_path):
    pytest.importorskip("h5py", reason="h5py is an extra")
    X = np.r_[make_blobs(100), make_blobs(100) + 60].astype(np.float32)
    path = tmp_path / f"cells.{ending}"
    with warnings.catch_warnings():  # of anndata, about its next version
        warnings.simplefilter("ignore")
        cells = anndata.AnnData(X)
        mmcnb.annotate(cells, probabilities=True, random_state=0)
        layers = [name for name in cells.obs if "layer" in name]
        assert layers != []
        # as the plots of scanpy leave them
        for name in ("mmcnb", *layers):
            n_colors = cells.obs[name].cat.categories.size
            cells.uns[f"{name}_colors"] = ["#000000"] * n_colors
        cells.write_zarr(path) if ending == "zarr" else cells.write_h5ad(path)
        read = anndata.read_zarr if ending == "zarr" else anndata.read_h5ad
        again = read(path)
    view = again[::-1]
    fresh = anndata.AnnData(X)
    for one in (again, view, fresh):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mmcnb.annotate(one, estimator=mmcnb.CPMMC(n_init=1, random_state=0))
    for one in (again, view):
        assert one.obs.columns.tolist() == fresh.obs.columns.tolist()
        assert list(one.obsm) == []
        assert sorted(one.uns) == ["mmcnb", "mmcnb_colors"]
        assert one.uns["mmcnb"]["params"] == fresh.uns["mmcnb"]["params"]
    assert again.obs["mmcnb"].tolist() == fresh.obs["mmcnb"].tolist()


def test_columns_that_annotate_has_not_written_stay(cells):
    cells.obs["mmcnb_layer_99"] = "of the user"
    cells.uns["mmcnb"] = np.arange(3)
    mmcnb.annotate(cells, 2, random_state=0)
    assert cells.obs["mmcnb_layer_99"].eq("of the user").all()


@pytest.mark.parametrize("copy", [False, True])
def test_annotate_writes_into_a_lazy_object(cells, tmp_path, copy):
    pytest.importorskip("xarray", reason="lazy objects need xarray")
    from anndata.experimental import read_lazy

    with warnings.catch_warnings():  # of anndata, about its next version
        warnings.simplefilter("ignore")
        cells.write_zarr(tmp_path / "cells.zarr")
    lazy = read_lazy(tmp_path / "cells.zarr")
    mmcnb.annotate(lazy, 2, random_state=0)  # its columns are replaced
    method = {"estimator": mmcnb.CPMMC(n_init=1, random_state=0)}
    copied = mmcnb.annotate(lazy, **method, copy=copy)
    mmcnb.annotate(cells, **method)
    annotated = (copied if copy else lazy).to_memory()
    assert annotated.obs.columns.tolist() == cells.obs.columns.tolist()
    assert annotated.obs["mmcnb"].tolist() == cells.obs["mmcnb"].tolist()
    assert annotated.uns["mmcnb"]["n_clusters"] == 2


def test_annotate_takes_rows_that_are_all_equal():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cells = anndata.AnnData(np.ones((20, 3), np.float32))
        mmcnb.annotate(cells, random_state=0)
    assert cells.obs.columns.tolist() == ["mmcnb", "mmcnb_margin"]
    assert cells.uns["mmcnb"]["n_clusters"] == 1


def test_annotate_takes_an_estimator_and_may_copy(cells):
    method = mmcnb.UnsupervisedRLS(
        cluster_sizes=[0.5, 0.3, 0.2], random_state=0, n_init=2
    )
    options = {
        "element": "layers/counts",
        "key_added": "rls",
        "estimator": method,
        "copy": True,
    }
    copied = mmcnb.annotate(cells, 3, **options, n_landmarks=50)
    assert cells.obs.columns.tolist() == ["y"]
    assert "rls" not in cells.uns
    assert copied.obs["rls"].cat.categories.tolist() == ["0", "1", "2"]
    np.testing.assert_array_equal(copied.obs["rls"].astype(int), method.labels_)
    assert method.n_landmarks == copied.uns["rls"]["params"]["n_landmarks"] == 50
    assert "trust" not in copied.uns["rls"]
    assert copied.uns["rls"]["params"]["cluster_sizes"].tolist() == [0.5, 0.3, 0.2]


@pytest.mark.parametrize(
    ("ending", "element"),
    [("zarr", "X"), ("h5ad", "layers/counts"), ("zarr", "obsm/X_pca")],
)
def test_a_table_of_stored_cells_has_their_names(ending, element, cells, tmp_path):
    pytest.importorskip("h5py", reason="h5py is an extra")
    path = tmp_path / f"cells.{ending}"
    with warnings.catch_warnings():  # of anndata, about its next version
        warnings.simplefilter("ignore")
        cells.write_zarr(path) if ending == "zarr" else cells.write_h5ad(path)
    samples = mmcnb.open_samples(path, element)
    model = mmcnb.CPMMC(n_init=1, random_state=0).fit_model(samples)
    model.predict(samples, out=tmp_path / "l.csv")
    assert read_table(tmp_path / "l.csv").index.tolist() == cells.obs_names.tolist()
    assert model.to_frame(samples).index.tolist() == cells.obs_names.tolist()


def test_annotate_streams_a_backed_object(cells, tmp_path):
    pytest.importorskip("h5py", reason="h5py is an extra")
    cells.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    method = {"estimator": mmcnb.CPMMC(n_init=1, random_state=0)}
    mmcnb.annotate(backed, **method)
    mmcnb.annotate(cells, **method)
    assert backed.obs["mmcnb"].tolist() == cells.obs["mmcnb"].tolist()
    with pytest.raises(InputError, match="adata is backed and cannot be copied"):
        mmcnb.annotate(backed, **method, copy=True)
    backed.file.close()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"element": "obsm/X_umap"}, "has no element 'obsm/X_umap'"),
        ({"element": "var"}, "has no element 'var'"),
        (
            {"estimator": "leiden"},
            "estimator='leiden' is not a clusterer of mmcnb; pass an mmcnb clusterer",
        ),
        (
            {"estimator": mmcnb.CPMMC(), "probabilities": True},
            "CPMMC does not compute probabilities; leave probabilities out",
        ),
        ({"resolution": 1.0}, "Invalid parameter 'resolution'"),
        ({"n_clusters": 301}, "n_clusters=301 is more than the 300 rows"),
    ],
)
def test_annotate_refuses_in_one_sentence_and_writes_nothing(options, sentence, cells):
    with pytest.raises(InputError, match=rf"^[^\n]*{sentence}[^\n]*$"):
        mmcnb.annotate(cells, **options)
    assert cells.obs.columns.tolist() == ["y"]
    assert list(cells.uns) == []


def test_annotate_wants_an_anndata_object(X):
    with pytest.raises(
        InputError, match="adata is of type ndarray; pass an AnnData object"
    ):
        mmcnb.annotate(X)


# -- addresses, which can be read but not written --------------------------------------


@pytest.mark.parametrize("output", ["rows.zarr", "labels", "labels.csv", "m", "p.html"])
def test_an_address_as_output_is_refused_with_a_way_that_works(
    output, X, tmp_path, monkeypatch
):
    fsspec = pytest.importorskip("fsspec", reason="addresses are an extra")
    monkeypatch.chdir(tmp_path)
    fsspec.filesystem("memory").store.clear()
    model = mmcnb.CPMMC(n_init=1, random_state=0).fit(X)
    write = {
        "rows.zarr": lambda path: convert(X, path),
        "labels": lambda path: model.predict(X, path),
        "labels.csv": lambda path: model.predict(X, path),
        "m": model.save,
        "p.html": lambda path: model.write_report(X, path),
    }[output]
    with pytest.raises(InputError, match="is an address, but outputs") as refusal:
        write(f"memory://here/{output}")
    assert list(tmp_path.iterdir()) == []
    write(output)
    eval(str(refusal.value).partition("for example with ")[2].removesuffix("."))
    copied = fsspec.filesystem("memory").find("here")
    assert copied
    assert all(path.startswith(f"/here/{output}") for path in copied)
    if output == "rows.zarr":
        expected = mmcnb.open_samples(output).digest
        assert mmcnb.open_samples("memory://here/rows.zarr").digest == expected


def test_a_checkpoint_at_an_address_is_refused(X):
    model = mmcnb.CPMMC(n_init=1, random_state=0, checkpoint="memory://passes")
    with pytest.raises(InputError, match="memory://passes is an address"):
        model.fit(X)


def test_a_file_address_is_a_path(X, tmp_path):
    convert(X, f"file://{tmp_path}/rows.zarr")
    assert mmcnb.open_samples(tmp_path / "rows.zarr").n_samples == len(X)
