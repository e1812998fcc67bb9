"""Matrix Market files: the rows that they have, alone and in folders of 10x, whatever their form and the memory."""

import pickle
import re
import warnings

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse

import mmcnb
from mmcnb.cli import main
from mmcnb.samples.matrix import as_matrix
from tests.samples.common import COMPRESS, one_sentence, rows_of, same_bits

RNG = np.random.default_rng(3)
KINDS = RNG.integers(3, size=120)
MEANS = np.kron(np.eye(3), np.full(8, 5.0)) + 0.2
COUNTS = RNG.poisson(MEANS[KINDS])  # 120 cells x 24 genes
HEAD = "%%MatrixMarket matrix coordinate integer general\n"

ARRAY = "%%MatrixMarket matrix array integer general\n"


def written(path, matrix, **options):
    """A Matrix Market file, compressed as its ending says."""
    plain = path.with_suffix(".mtx") if path.suffix != ".mtx" else path
    scipy.io.mmwrite(plain, matrix, **options)
    if plain != path:
        path.write_bytes(COMPRESS[path.suffix](plain.read_bytes()))
        plain.unlink()
    return path


def folder_of_10x(
    folder, packed="", genes="features.tsv", prefix="", counts=COUNTS, types=None
):
    """A folder as Cell Ranger writes it, with symbols of which two are equal."""
    folder.mkdir(parents=True, exist_ok=True)
    n_cells, n_genes = counts.shape
    written(folder / f"{prefix}matrix.mtx{packed}", scipy.sparse.coo_array(counts.T))
    lines = []
    for k in range(n_genes):
        cells = [f"ENSG{k:04}", f"GENE{max(k, 1)}"]
        if genes == "features.tsv":
            cells.append(types[k] if types else "Gene Expression")
        lines.append("\t".join(cells) + "\n")
    beside = {
        "barcodes.tsv": "".join(f"CELL{k}-1\n" for k in range(n_cells)),
        genes: "".join(lines),
    }
    for name, text in beside.items():
        path = folder / f"{prefix}{name}{packed}"
        path.write_bytes(COMPRESS[packed](text.encode()))
    return folder


# -- files of a matrix -----------------------------------------------------------------


@pytest.mark.parametrize("packed", COMPRESS)
def test_rows_of_a_file_are_its_rows(tmp_path, packed):
    path = written(tmp_path / f"cells.mtx{packed}", scipy.sparse.coo_array(COUNTS / 4))
    samples = mmcnb.open_samples(path)
    assert samples.is_sparse
    same = mmcnb.open_samples(scipy.sparse.csr_array(COUNTS / 4))
    assert same_bits(samples.block(0, 120), same.block(0, 120))
    assert same_bits(samples.gather(np.arange(5)), same.gather(np.arange(5)))


@pytest.mark.parametrize("field", ["real", "integer", "pattern"])
@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric"])
@pytest.mark.parametrize("form", ["coordinate", "array"])
def test_each_form_is_what_scipy_reads(tmp_path, field, symmetry, form):
    square = RNG.integers(1, 9, size=(20, 20))
    if form == "coordinate":
        square = square * (RNG.random((20, 20)) < 0.3)
    if symmetry == "symmetric":
        square = square + square.T
    if symmetry == "skew-symmetric":
        square = square - square.T
    matrix = scipy.sparse.coo_array(square) if form == "coordinate" else square
    if (form, field) == ("array", "pattern"):
        pytest.skip("there is no such file")
    path = tmp_path / "square.mtx"
    scipy.io.mmwrite(path, matrix, field=field, symmetry=symmetry)
    read = scipy.io.mmread(path)
    dense = read if form == "array" else read.toarray()
    samples = mmcnb.open_samples(path)
    assert samples.is_sparse == (form == "coordinate")
    np.testing.assert_array_equal(rows_of(path), dense)


def test_values_of_one_place_are_added_in_any_order(tmp_path):
    path = tmp_path / "again.mtx"
    path.write_text(
        HEAD + "% a comment\n\n3 2 5\n3 2 4\n1 1 1\n\n3 2 5\n2 1 7\n1 2 0\n\n"
    )
    np.testing.assert_array_equal(rows_of(path), [[1, 0], [7, 0], [0, 9]])


def test_a_renamed_file_is_recognised(tmp_path):
    path = written(tmp_path / "cells.mtx", scipy.sparse.coo_array(COUNTS))
    for name in ("cells.txt", "cells.data", "cells"):
        path = path.rename(tmp_path / name)
        np.testing.assert_array_equal(rows_of(path), COUNTS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 1 2\n", r"line 1: this is not the first line of a Matrix Market file"),
        (HEAD, r"ends before its size line"),
        (HEAD + "3 3\n", r"line 2: '3 3' must give the numbers of rows, columns and"),
        (HEAD + "3 3 1\n1 4 2\n", r"line 3: '1 4 2' has a column outside 1 to 3"),
        (HEAD + "3 3 1\n0 1 2\n", r"line 3: '0 1 2' has a row outside 1 to 3"),
        (HEAD + "3 3 1\n1 1 x\n", r"line 3: '1 1 x' has a value that is not a number"),
        (
            HEAD + "3 3 1\n1 1 2.5\n",
            r"line 3: '1 1 2.5' has a value that is not an integer",
        ),
        (HEAD + "3 3 1\n1 1 2\0\n", r"line 3: .* has a value that is not a number"),
        (
            HEAD + "3 3 2\n1 1 2\n1 2 3x",
            r"line 4: '1 2 3x' has a value that is not a num",
        ),
        (
            HEAD + "3 3 1\n1 1 nan3\n",
            r"line 3: '1 1 nan3' has a value that is not a num",
        ),
        (HEAD + "3 3 2\n1 1 2\n1 2\n", r"line 4: '1 2' has 2 numbers, not 3"),
        (HEAD + "3 3 1\n1 1 2 5\n", r"line 3: '1 1 2 5' has 4 numbers, not 3"),
        (
            HEAD + "3 3 3\n1 1 2\n2 2 2\n",
            r"line 2: .* announces 3 values, .*only 2: get",
        ),
        (HEAD + "3 3 1\n1 1 2\n2 2 2\n", r"line 2: .* announces 1 values, .*more: get"),
        (
            HEAD.replace("general", "symmetric") + "3 2 1\n1 1 2\n",
            r"line 2: a symmetric",
        ),
        (HEAD.replace("integer", "complex") + "1 1 1\n1 1 2 0\n", r"complex numbers"),
        (HEAD.replace("integer", "array"), r"'coordinate array general' is unknown"),
        (
            HEAD.replace("integer", "real") + "2 2 1\n1 1 nan\n",
            r"NaN at row 0, column 0",
        ),
        (HEAD + "0 3 0\n", r"0 sample"),
        (ARRAY + "2 2\n1\n2\n3\n", r"line 2: .* announces 4 values, .*only 3: get"),
        (ARRAY + "2 1\n1\n2.5\n", r"line 4: '2.5' has a value that is not an integer"),
        (ARRAY + "2 1\n1\n2 3\n", r"line 4: '2 3' has 2 numbers, not 1"),
    ],
)
def test_a_damaged_file_is_named_with_its_line(tmp_path, text, message):
    path = tmp_path / "cells.mtx"
    path.write_text(text)
    with one_sentence(message) as caught:
        mmcnb.open_samples(path)
    assert str(path) in str(caught.value)


def test_elements_and_options_of_tables_are_refused(tmp_path):
    path = written(tmp_path / "cells.mtx", scipy.sparse.coo_array(COUNTS))
    with one_sentence("has no element 'X': leave element out"):
        mmcnb.open_samples(path, "X")
    with one_sentence("drop applies to data frames and tables only"):
        mmcnb.read_table(path, drop="GENE1")


# -- folders of 10x --------------------------------------------------------------------


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("genes", ["features.tsv", "genes.tsv"])
@pytest.mark.parametrize("prefix", ["", "GSM1_"])
def test_a_folder_has_cells_as_rows_and_names(tmp_path, packed, genes, prefix):
    folder = folder_of_10x(tmp_path / "counts", packed, genes, prefix)
    samples = mmcnb.open_samples(folder)
    np.testing.assert_array_equal(rows_of(folder), COUNTS)
    assert samples.feature_names[:4] == ["GENE1", "GENE1-1", "GENE2", "GENE3"]
    index = samples.row_index.to_pandas()
    assert list(index) == [f"CELL{k}-1" for k in range(120)]


def test_a_folder_is_fitted_as_the_matrix_in_memory(tmp_path, capsys):
    folder = folder_of_10x(tmp_path / "counts", ".gz")
    fit = mmcnb.MaximumMarginClustering(random_state=0).fit
    model = fit(folder)
    labels = model.labels_.copy()
    assert list(model.row_index_[:2]) == ["CELL0-1", "CELL1-1"]
    np.testing.assert_array_equal(model.predict(folder), labels)
    assert len(set(zip(labels.tolist(), KINDS.tolist(), strict=True))) == 3
    np.testing.assert_array_equal(fit(scipy.sparse.csr_array(COUNTS)).labels_, labels)
    model_file = str(tmp_path / "cells.model")
    table = tmp_path / "labels.csv"
    fitted = ["fit", str(folder), "--model", model_file, "--random-state", "0"]
    assert main(fitted) == 0
    assert main(["predict", model_file, str(folder), "--labels", str(table)]) == 0
    frame = pd.read_csv(table)
    assert list(frame["index"][:2]) == ["CELL0-1", "CELL1-1"]
    np.testing.assert_array_equal(frame["cluster"], labels)
    for verb in ("info", "plan"):
        assert main([verb, str(folder)]) == 0
        assert "120" in capsys.readouterr().out
    dense = tmp_path / "dense.mtx"
    scipy.io.mmwrite(dense, COUNTS)
    assert main(["info", str(dense)]) == 0
    assert "dense" in capsys.readouterr().out


def test_a_folder_becomes_a_sparse_store_with_names(tmp_path):
    folder = folder_of_10x(tmp_path / "counts")
    store = tmp_path / "cells.zarr"
    assert main(["convert", str(folder), str(store)]) == 0
    samples = mmcnb.open_samples(store)
    same = mmcnb.open_samples(folder)
    assert samples.is_sparse
    assert samples.feature_names == same.feature_names
    assert same_bits(samples.block(0, 120), same.block(0, 120))
    model = mmcnb.MaximumMarginClustering(random_state=0).fit(store)
    assert list(model.row_index_[:2]) == ["CELL0-1", "CELL1-1"]


def test_rows_of_the_file_in_a_folder_are_taken_with_a_warning(tmp_path):
    folder = folder_of_10x(tmp_path / "counts")
    with pytest.warns(mmcnb.ClusterWarning, match="give the folder to cluster the bar"):
        np.testing.assert_array_equal(rows_of(folder / "matrix.mtx"), COUNTS.T)


def test_features_may_have_identifiers_alone(tmp_path):
    folder = folder_of_10x(tmp_path / "counts")
    names = [f"ENSG{k}" for k in range(24)]
    lines = [f"{name}\t\r\n" for name in names]
    (folder / "features.tsv").write_bytes("".join(lines).encode())
    assert mmcnb.open_samples(folder).feature_names == names
    (folder / "features.tsv").write_text("\n".join(names))
    assert mmcnb.open_samples(folder).feature_names == names


def test_a_matrix_that_has_cells_as_rows_is_seen_by_its_size(tmp_path):
    folder = folder_of_10x(tmp_path / "counts")
    written(folder / "matrix.mtx", scipy.sparse.coo_array(COUNTS))
    np.testing.assert_array_equal(rows_of(folder), COUNTS)


def test_other_types_of_features_are_left_out_aloud(tmp_path):
    types = ["Gene Expression"] * 20 + ["Antibody Capture"] * 4
    folder = folder_of_10x(tmp_path / "counts", types=types)
    with pytest.warns(mmcnb.ClusterWarning, match=r"'Antibody Capture' \(4\) are left"):
        np.testing.assert_array_equal(rows_of(folder), COUNTS[:, :20])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        proteins = mmcnb.open_samples(folder, "Antibody Capture")
    assert proteins.feature_names == ["GENE20", "GENE21", "GENE22", "GENE23"]
    assert proteins.n_features == 4
    with one_sentence("no features of the type 'ATAC'.*'Antibody Capture'"):
        mmcnb.open_samples(folder, "ATAC")


@pytest.mark.parametrize("verb", ["python", "fit", "info", "convert"])
@pytest.mark.parametrize("missing", ["barcodes.tsv", "features.tsv"])
def test_a_missing_file_is_named_with_what_works(tmp_path, capsys, missing, verb):
    folder = folder_of_10x(tmp_path / "counts")
    (folder / missing).unlink()
    if verb == "python":
        with one_sentence("give") as caught:
            mmcnb.open_samples(folder)
        message = str(caught.value)
    else:
        out = {"convert": [str(tmp_path / "o.zarr")], "fit": ["--labels", "-"]}
        assert main([verb, str(folder), *out.get(verb, [])]) == 2
        message = capsys.readouterr().err
    assert f"no {missing}" in message
    path = re.search(r"give (\S+),", message)[1]
    np.testing.assert_array_equal(rows_of(path), COUNTS.T)


@pytest.mark.parametrize("name", ["barcodes.tsv", "features.tsv"])
@pytest.mark.parametrize("n_more", [-1, 1])
def test_lines_that_do_not_agree_with_the_size_are_an_error(tmp_path, name, n_more):
    folder = folder_of_10x(tmp_path / "counts")
    path = folder / name
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(["name\n", *lines] if n_more == 1 else lines[:-1]))
    what = "120 columns" if name == "barcodes.tsv" else "24 rows"
    with one_sentence(
        f"{name} has {len(lines) + n_more} lines, .* announces {what}"
    ) as caught:
        mmcnb.open_samples(folder)
    assert ("header" in str(caught.value)) == (n_more == 1)


def test_several_matrices_and_those_below_a_folder_are_named(tmp_path):
    below = folder_of_10x(tmp_path / "outs" / "filtered")
    with one_sentence(f"a matrix in a folder below it: give {below} instead"):
        mmcnb.open_samples(tmp_path)
    folder_of_10x(below, prefix="GSM2_")
    with one_sentence("has 2 matrices, such as GSM2_matrix.mtx, matrix.mtx"):
        mmcnb.open_samples(below)


# -- HDF5 files of 10x -----------------------------------------------------------------


def file_of_10x(path, version=3, types=None, counts=COUNTS, group="matrix"):
    """A file as Cell Ranger 3 or 2 writes it."""
    csc = scipy.sparse.csr_array(counts).astype("int32")
    n_cells, n_genes = counts.shape
    texts = {"barcodes": [f"CELL{k}-1" for k in range(n_cells)]}
    ids = [f"ENSG{k:04}" for k in range(n_genes)]
    symbols = [f"GENE{max(k, 1)}" for k in range(n_genes)]
    if version == 3:
        types = types or ["Gene Expression"] * n_genes
        texts |= {"features/id": ids, "features/name": symbols}
        texts["features/feature_type"] = types
    else:
        texts |= {"genes": ids, "gene_names": symbols}
    with h5py.File(path, "a") as file:
        parts = file.create_group(group)
        parts["data"] = csc.data
        parts.create_dataset("indices", data=csc.indices.astype("int64"), chunks=(100,))
        parts["indptr"] = csc.indptr.astype("int64")
        parts["shape"] = np.array([n_genes, n_cells], "int32")
        for name, values in texts.items():
            parts[name] = np.array(values, "S")
    return path


@pytest.mark.parametrize("version", [2, 3])
def test_a_file_of_10x_is_read_as_its_folder(tmp_path, version):
    group = "matrix" if version == 3 else "GRCh38"
    path = file_of_10x(tmp_path / "filtered.h5", version, group=group)
    samples = mmcnb.open_samples(path)
    same = mmcnb.open_samples(folder_of_10x(tmp_path / "counts"))
    assert same_bits(samples.block(0, 120), same.block(0, 120))
    assert same_bits(samples.gather(np.arange(3)), same.gather(np.arange(3)))
    assert samples.feature_names == same.feature_names
    assert samples.digest == same.digest
    pd.testing.assert_index_equal(
        samples.row_index.to_pandas(), same.row_index.to_pandas()
    )
    again = pickle.loads(pickle.dumps(samples))
    assert same_bits(samples.block(7, 90), again.block(7, 90))
    with h5py.File(path) as file:
        np.testing.assert_array_equal(rows_of(file[group]), COUNTS)
        np.testing.assert_array_equal(rows_of(file), COUNTS)


@pytest.mark.filterwarnings("ignore:the store has no checksums")
def test_a_file_of_10x_is_fitted_and_converted(tmp_path, capsys):
    path = str(file_of_10x(tmp_path / "filtered.h5"))
    model = mmcnb.MaximumMarginClustering(random_state=0).fit(path)
    assert list(model.row_index_[:2]) == ["CELL0-1", "CELL1-1"]
    model_file = str(tmp_path / "cells.model")
    table = tmp_path / "labels.csv"
    assert main(["fit", path, "--model", model_file, "--random-state", "0"]) == 0
    assert main(["predict", model_file, path, "--labels", str(table)]) == 0
    frame = pd.read_csv(table)
    assert list(frame["index"][:2]) == ["CELL0-1", "CELL1-1"]
    np.testing.assert_array_equal(frame["cluster"], model.labels_)
    assert main(["info", path]) == 0
    assert "120" in capsys.readouterr().out
    store = tmp_path / "cells.zarr"
    assert main(["convert", path, str(store)]) == 0
    assert mmcnb.open_samples(store).feature_names[:2] == ["GENE1", "GENE1-1"]
    np.testing.assert_array_equal(rows_of(store), COUNTS)


def test_types_of_features_in_a_file_are_elements(tmp_path):
    types = ["Gene Expression"] * 20 + ["Antibody Capture"] * 4
    path = file_of_10x(tmp_path / "filtered.h5", types=types)
    with pytest.warns(mmcnb.ClusterWarning, match=r"'Antibody Capture' \(4\) are left"):
        np.testing.assert_array_equal(rows_of(path), COUNTS[:, :20])
    proteins = mmcnb.open_samples(path, "Antibody Capture")
    assert proteins.feature_names == ["GENE20", "GENE21", "GENE22", "GENE23"]
    again = pickle.loads(pickle.dumps(proteins))
    for samples in (proteins, again):
        np.testing.assert_array_equal(
            as_matrix(samples.block(0, 120)).toarray(), COUNTS[:, 20:]
        )
        rows = np.array([2, 5])
        np.testing.assert_array_equal(
            as_matrix(samples.gather(rows)).toarray(), COUNTS[rows, 20:]
        )
    with one_sentence("no features of the type 'X'.*'Antibody Capture'"):
        mmcnb.open_samples(path, "X")


def test_a_file_of_several_genomes_asks_for_one(tmp_path):
    path = tmp_path / "raw.h5"
    file_of_10x(path, 2, group="GRCh38")
    file_of_10x(path, 2, group="mm10", counts=COUNTS[:, ::-1])
    with one_sentence(r"a matrix of each genome: name one .*of GRCh38, mm10"):
        mmcnb.open_samples(path)
    mouse = mmcnb.open_samples(path, "mm10").block(0, 120)
    np.testing.assert_array_equal(as_matrix(mouse).toarray(), COUNTS[:, ::-1])


@pytest.mark.parametrize("name", ["barcodes", "features/name", "indptr", "shape"])
def test_parts_of_a_file_that_do_not_agree_are_named(tmp_path, name):
    path = file_of_10x(tmp_path / "filtered.h5")
    with h5py.File(path, "a") as file:
        values = file["matrix"][name][:-1]
        del file["matrix"][name]
        file["matrix"][name] = values
    with one_sentence(f"filtered.h5.*{name.rpartition('/')[2]}"):
        mmcnb.open_samples(path)


# -- memory ----------------------------------------------------------------------------


def test_entries_beyond_the_limit_go_to_a_scratch_file(tmp_path):
    n_entries = 1_300_000
    folder = tmp_path / "counts"
    folder.mkdir()
    rows = RNG.integers(1, 301, size=n_entries)
    columns = RNG.integers(1, 9001, size=n_entries)
    columns[: n_entries // 4] = 4000  # one cell has most of them
    values = RNG.integers(1, 9, size=n_entries)
    lines = pd.DataFrame({"row": rows, "column": columns, "value": values})
    with (folder / "matrix.mtx").open("w") as file:
        file.write(f"{HEAD}300 9000 {n_entries}\n")
        lines.to_csv(file, sep=" ", header=False, index=False)
    (folder / "barcodes.tsv").write_text("".join(f"C{k}\n" for k in range(9000)))
    (folder / "genes.tsv").write_text("".join(f"E{k}\tG{k}\n" for k in range(300)))
    small = mmcnb.open_samples(folder, memory_limit="430MiB")
    large = mmcnb.open_samples(folder, memory_limit="4GiB")
    assert type(small) is not type(large)
    for span in [(0, 4096), (3990, 4010), (4096, 8192), (0, 9000), (8999, 9000)]:
        assert same_bits(small.block(*span), large.block(*span))
    some = np.array([0, 7, 3999, 4000, 8999])
    assert same_bits(small.gather(some), large.gather(some))
    assert small.digest == large.digest
    assert small.feature_names == large.feature_names
    with one_sentence("is in a scratch file and cannot be sent to another process"):
        small.__reduce__()


@pytest.mark.parametrize("form", ["coordinate", "array"])
def test_a_limit_that_is_too_small_is_refused_before_reading(tmp_path, form):
    path = tmp_path / "claims.mtx"
    sizes = "900000000 5 7" if form == "coordinate" else "90000000 5"
    path.write_text(f"%%MatrixMarket matrix {form} real general\n{sizes}\n")
    pattern = (
        r"memory_limit=600 MiB is too small .*the least that works is ([\d.]+ \w+)"
    )
    with one_sentence(pattern) as caught:
        mmcnb.open_samples(path, memory_limit="600MiB")
    least = re.search(pattern, str(caught.value))[1]
    with one_sentence("has only 0"):
        mmcnb.open_samples(path, memory_limit=least)
