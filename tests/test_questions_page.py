"""Every answer of the page of questions is shown: by code that runs, by a test, or by a reason for a no."""

import ast
import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.neighbors import kneighbors_graph

import mmcnb
from mmcnb.stores import convert, create_dense_store, verify_store

try:
    from sklearn import callback
except ImportError:
    callback = None

ROOT = Path(__file__).parent.parent
with (ROOT / "docs/questions.csv").open(newline="", encoding="utf-8") as file:
    ROWS = list(csv.DictReader(file))
SHOWN = [row["code"].strip("`") for row in ROWS if row["code"]]


@pytest.fixture
def reader(tmp_path, monkeypatch):
    """What a reader has: rows in memory and in stores, a table, sparse rows, cells and a fit."""
    anndata, polars = pytest.importorskip("anndata"), pytest.importorskip("polars")
    monkeypatch.chdir(tmp_path)
    X = np.ascontiguousarray(load_digits().data[:600])
    for name in ("rows.zarr", "new.zarr"):
        with create_dense_store(name, n_features=X.shape[1], dtype="float64") as store:
            store.append(X)
    np.save("rows.npy", X)
    sparse, wide = sp.csr_array(X), sp.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    adata = anndata.AnnData(X.astype(np.float32), obsm={"X_pca": X.astype(np.float32)})
    adata.obsp["distances"] = kneighbors_graph(X, 15, mode="distance")
    near = kneighbors_graph(X, 15)
    adata.obsp["connectivities"] = near.maximum(near.T)
    frame = pd.DataFrame(X, columns=[f"pixel {number}" for number in range(X.shape[1])])
    frame["kind"] = np.where(X[:, 20] > 4, "dark", "light")
    model = mmcnb.MaximumMarginClustering(n_clusters=10, random_state=0).fit(X)
    own = {"X": X, "sparse": sparse, "wide": wide, "adata": adata, "frame": frame, "model": model}
    modules = {"np": np, "mmcnb": mmcnb, "convert": convert, "verify_store": verify_store}
    modules |= {"polars": polars, "ProgressBar": getattr(callback, "ProgressBar", None)}
    return {**own, **modules, "labels": model.labels_}


def test_each_answer_is_shown():
    assert len(ROWS) > 50
    assert len({row["question"] for row in ROWS}) == len(ROWS)
    bare = [row["answer"] for row in ROWS if not row["code"]]
    assert all(answer.startswith("No") and "because" in answer for answer in bare)


@pytest.mark.slow
@pytest.mark.parametrize("code", [code for code in SHOWN if not code.startswith("tests/")])
def test_the_code_of_an_answer_does_something(code, reader, capsys):
    if "callbacks" in code and callback is None:
        pytest.skip("scikit-learn has callbacks from 1.9 on")
    files = set(Path().iterdir())
    *others, last = ast.parse(code).body
    exec(compile(ast.Module(others, []), code, "exec"), reader)
    value = eval(compile(ast.Expression(last.value), code, "eval"), reader)
    assert value is not False
    assert value is not None or capsys.readouterr().out or set(Path().iterdir()) > files


@pytest.mark.parametrize("path", [code for code in SHOWN if code.startswith("tests/")])
def test_the_test_of_an_answer_is_there(path):
    assert "def test_" in (ROOT / path).read_text()
