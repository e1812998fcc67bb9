"""The code of every page runs, from its first block to its last."""

import re
import shutil
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

import mmcnb
from mmcnb.stores import create_dense_store

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OWN_TESTS = ("choice", "graph", "own_kernels", "tables")  # which say what the code finds, too
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SHOWN = [page for page in PAGES if BLOCK.search(page.read_text()) and page.stem not in OWN_TESTS]


def write(path, X):
    with create_dense_store(path, n_features=X.shape[1], dtype=X.dtype.name) as store:
        store.append(X)


@pytest.fixture
def said(tmp_path, monkeypatch):
    """What a page takes for granted: the reader's own rows, stores and cells, and a fit."""
    monkeypatch.chdir(tmp_path)
    X, y = load_digits(return_X_y=True)
    for name in ("rows.zarr", "digits.zarr", "new.zarr"):
        write(name, X[:600])
    estimator = mmcnb.MaximumMarginClustering(n_clusters=10, random_state=0).fit(X[:600])
    return {"mmcnb": mmcnb, "X": X[:600], "y": y[:600], "model": estimator, "estimator": estimator}


def cells(X):
    """Cells with the graph of their neighbours, as scanpy makes it."""
    from sklearn.neighbors import kneighbors_graph

    anndata = pytest.importorskip("anndata")
    adata = anndata.AnnData(X.astype(np.float32), obsm={"X_pca": X.astype(np.float32)})
    adata.obsp["distances"] = kneighbors_graph(X, 15, mode="distance")
    return adata


@pytest.mark.slow
@pytest.mark.parametrize("page", SHOWN, ids=lambda page: page.stem)
def test_the_code_of_a_page_runs(page, said, monkeypatch):
    for code in BLOCK.findall(page.read_text()):
        if 'create_dense_store("rows.zarr"' in code:
            shutil.rmtree("rows.zarr")
        if "bertopic" in code and find_spec("bertopic") is None:
            continue
        if "adata" in code and "adata =" not in code:
            said["adata"] = cells(said["X"])
        if "distributed" in code:
            monkeypatch.setattr("distributed.Client.__init__", own_cluster(code))
        before = set(said)
        exec(code, said)
        assert set(said) >= before


def own_cluster(code):
    """A client of a cluster in this process, in place of that of the page."""
    from distributed import Client

    made = Client.__init__
    (address,) = re.findall(r'"(tcp://[^"]*)"', code)

    def init(self, given=None, **options):
        own = {"processes": False, "n_workers": 1, "dashboard_address": None}
        made(self, **(own | options)) if given == address else made(self, given, **options)

    return init


def test_every_page_with_code_is_run():
    assert {"coming_from", "dask", "get_started", "labels_out", "more_clusters"} <= {p.stem for p in SHOWN}
    assert all((ROOT / f"tests/test_{name}_page.py").exists() for name in OWN_TESTS)
