"""Elements of files with several modalities."""

import re

import anndata
import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import zarr

import mmcnb
from mmcnb.cli import main
from tests.samples.common import one_sentence, same_bits

pytestmark = pytest.mark.filterwarnings("ignore:Writing zarr v2", "ignore:zarr v3 auto")
RNG = np.random.default_rng(5)
KINDS = RNG.integers(2, size=60)
X = (RNG.poisson(1 + 9 * KINDS[:, None], size=(60, 6)) + 0.5).astype("float32")
CELLS = [f"CELL{k}" for k in range(60)]
ELEMENTS = ["mod/prot/X", "mod/rna/X", "mod/rna/layers/raw", "mod/rna/obsm/X_pca"]


def annotated(columns, **parts):
    """AnnData of some columns of X, with names."""
    names = pd.DataFrame(index=[f"gene{k}" for k in columns])
    cells = pd.DataFrame(index=CELLS)
    return anndata.AnnData(X[:, columns].copy(), cells, names, **parts)


def write_mudata(root):
    """Write two modalities as MuData does, to a group of h5py or Zarr."""
    root.attrs["encoding-type"] = "MuData"
    root.attrs["encoding-version"] = "0.1.0"
    modalities = root.create_group("mod")
    sparse = scipy.sparse.csr_matrix(X[:, :4])
    rna = annotated(range(4), layers={"raw": sparse}, obsm={"X_pca": X[:, :2].copy()})
    anndata.io.write_elem(modalities, "rna", rna)
    anndata.io.write_elem(modalities, "prot", annotated([4, 5]))
    anndata.io.write_elem(root, "obs", pd.DataFrame(index=CELLS))
    anndata.io.write_elem(root, "obsm", {"rna": np.ones(60, bool)})


@pytest.fixture(params=["h5mu", "zarr"])
def modalities(request, tmp_path):
    """The path of a file or a store with two modalities."""
    path = tmp_path / f"cells.{request.param}"
    if request.param == "h5mu":
        with h5py.File(path, "w") as file:
            write_mudata(file)
    else:
        write_mudata(zarr.open_group(path, mode="w"))
    return path


@pytest.mark.filterwarnings("ignore:the store has no checksums")
def test_elements_of_modalities_are_named_and_fitted(modalities, tmp_path, capsys):
    with one_sentence(r"no element 'X'; it has: .*\(--element\)") as caught:
        mmcnb.open_samples(modalities)
    named = re.search(r"it has: (.*)\. Name", str(caught.value))[1].split(", ")
    assert sorted(named) == ELEMENTS
    for element in named:
        labels = tmp_path / "labels.csv"
        words = ["fit", str(modalities), "--element", element, "--labels", str(labels)]
        assert main([*words, "--n-clusters", "2", "--overwrite"]) == 0
        frame = pd.read_csv(labels)
        assert list(frame["index"]) == CELLS
        assert main(["info", str(modalities), "--element", element]) == 0
        assert "60" in capsys.readouterr().out


def test_a_modality_stands_for_its_rows(modalities):
    rna = mmcnb.open_samples(modalities, "mod/rna")
    np.testing.assert_array_equal(rna.block(0, 60), X[:, :4])
    assert rna.feature_names == ["gene0", "gene1", "gene2", "gene3"]
    assert mmcnb.open_samples(modalities, "mod/prot/X").n_features == 2
    if modalities.suffix == ".h5mu":
        with one_sentence("mod/rna/raw has no values: name another"):
            mmcnb.open_samples(modalities, "mod/rna/raw")
    same = mmcnb.open_samples(modalities, rna.element)
    assert same_bits(rna.block(0, 60), same.block(0, 60))
