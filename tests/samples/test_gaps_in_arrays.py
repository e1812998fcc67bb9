"""Gaps and marks of missing values in arrays, files and stores of numbers are those of tables."""

import pickle
import warnings

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import zarr

import mmcnb
from mmcnb.cli import main
from mmcnb.errors import InputError
from mmcnb.stores import convert, create_dense_store, open_class_labels
from tests.samples.common import assert_same, one_sentence

N = 9000
MARK = -999.9


def rows_with(gap, dtype=np.float32):
    """Three clusters, and gaps in 3 % of a column and one in another."""
    random = np.random.default_rng(0)
    rows = 8 * np.eye(3)[np.arange(N) % 3] + random.normal(size=(N, 3))
    rows = rows.astype(dtype)
    rows[random.random(N) < 0.03, 1] = gap
    rows[4100, 2] = gap
    return rows


def sources(rows, folder):
    """The rows in every storage that has dense numbers."""
    np.save(folder / "rows.npy", rows)
    np.save(folder / "columns.npy", np.asfortranarray(rows))
    zarr.create_array(folder / "rows.zarr", data=rows, chunks=(700, 3))
    with h5py.File(folder / "rows.h5", "w") as file:
        file["X"] = rows
    return {
        "array": rows,
        "frame": pd.DataFrame(rows),
        "npy": folder / "rows.npy",
        "npy by columns": str(folder / "columns.npy"),
        "memory map": np.load(folder / "rows.npy", mmap_mode="r"),
        "zarr": folder / "rows.zarr",
        "zarr array": zarr.open_array(folder / "rows.zarr", mode="r"),
        "hdf5": folder / "rows.h5",
    }


@pytest.mark.parametrize("gap", [np.nan, MARK])
@pytest.mark.parametrize("missing", ["median", "mean"])
def test_gaps_are_filled_to_the_bit_alike_in_all_storages(gap, missing, tmp_path):
    rows = rows_with(gap)
    options = {"missing": missing}
    if gap == MARK:
        options["na_values"] = MARK
    filled = mmcnb.read_table(rows, **options)
    known = pd.DataFrame(rows_with(np.nan), dtype=np.float64)
    expected = known.fillna(known.median() if missing == "median" else known.mean())
    np.testing.assert_allclose(filled.block(0, N), expected, rtol=1e-5)
    for source in sources(rows, tmp_path).values():
        samples = mmcnb.read_table(source, **options)
        assert_same(samples, filled)
        assert len(samples.notes) == 1
        assert "gaps were filled from their column" in samples.notes[0]


def test_a_model_fills_the_gaps_of_other_rows_as_those_of_its_fit(tmp_path):
    marked = sources(rows_with(MARK), tmp_path)
    rows = mmcnb.read_table(marked["array"], na_values=MARK)
    model = mmcnb.MaximumMarginClustering(3, random_state=0).fit(rows)
    model.save(tmp_path / "m")
    for fitted in (model, mmcnb.load(tmp_path / "m")):
        for source in (*marked.values(), rows_with(np.nan)):
            np.testing.assert_array_equal(fitted.predict(source), model.labels_)
    one = np.array([[0.0, MARK, 0.0]])
    middle = np.array([[0.0, model.model_.encoding.columns[1].fill, 0.0]])
    assert model.decision_function(one).tolist() == (
        model.decision_function(middle).tolist()
    )


def test_rows_with_gaps_are_left_out_and_keep_their_numbers(tmp_path):
    rows = rows_with(np.nan)
    is_whole = np.isfinite(rows).all(axis=1)
    for source in (rows, sources(rows, tmp_path)["zarr"]):
        samples = mmcnb.read_table(source, missing="drop")
        np.testing.assert_array_equal(samples.block(0, N), rows[is_whole])
        model = mmcnb.CPMMC(n_init=1, random_state=0).fit(samples)
        assert (
            model.to_frame(samples).index.tolist() == np.flatnonzero(is_whole).tolist()
        )


def test_integers_have_marks_too(tmp_path):
    rows = np.arange(60).reshape(20, 3)
    rows[3, 1] = -1
    samples = mmcnb.read_table(rows, na_values=[-1, 99])
    assert samples.block(3, 4).tolist() == [[9, 31, 11]]
    np.save(tmp_path / "x.npy", rows)
    assert mmcnb.read_table(tmp_path / "x.npy", na_values=-1).block(3, 4)[0, 1] == 31


def test_streamed_rows_can_be_sent_to_other_processes(tmp_path):
    stored = sources(rows_with(MARK), tmp_path)
    for source in (stored["npy"], stored["zarr"]):
        samples = mmcnb.read_table(source, na_values=MARK)
        again = pickle.loads(pickle.dumps(samples))
        assert again.digest == samples.digest
        assert samples.state() is not None


def test_the_command_takes_marks_of_arrays(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    sources(rows_with(MARK), tmp_path)
    sources_of_labels = {}
    warnings.simplefilter("ignore")
    for name in ("rows.npy", "rows.zarr", "rows.h5"):
        fit = ["fit", name, f"--na-values={MARK}", "--n-clusters", "3", "--model", "m"]
        assert main([*fit, "--labels", f"{name}.csv", "--overwrite"]) == 0
        sources_of_labels[name] = pd.read_csv(f"{name}.csv")["cluster"].tolist()
        assert main(["predict", "m", name, "--labels", f"{name}.2.csv"]) == 0
        predicted = pd.read_csv(f"{name}.2.csv")["cluster"].tolist()
        assert predicted == sources_of_labels[name]
        convert_words = ["convert", name, f"{name}.zarr", f"--na-values={MARK}"]
        assert main(convert_words) == 0
        filled = mmcnb.read_table(name, na_values=MARK)
        assert mmcnb.open_samples(f"{name}.zarr").digest == filled.digest
    assert len(set(map(tuple, sources_of_labels.values()))) == 1
    assert main(["fit", "rows.npy", "--thousands", ",", "--labels", "l.csv"]) == 2
    assert "--thousands applies to CSV" in capsys.readouterr().err


def test_the_remedy_for_nan_works(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("rows.npy", rows_with(np.nan))
    for X in (rows_with(np.nan), "rows.npy"):
        with one_sentence("contains NaN at row") as refusal:
            mmcnb.open_samples(X).block(0, N)
        call = str(refusal.value).partition("with ")[2].partition(")")[0] + ")"
        rows = eval(call, {"mmcnb": mmcnb, "X": X})
        assert mmcnb.CPMMC(n_init=1).fit(rows).labels_.size == N
    assert "--missing median" in str(refusal.value)
    warnings.simplefilter("ignore")
    assert main(["fit", "rows.npy", "--missing", "median", "--labels", "l.csv"]) == 0


@pytest.mark.parametrize("kind", ["array", "npy", "frame"])
def test_the_remedy_of_the_warning_of_a_mark_works(kind, tmp_path):
    # A frame has gaps where a known mark is.
    mark = -777 if kind == "frame" else MARK
    X = sources(rows_with(mark), tmp_path)[kind]
    with pytest.warns(mmcnb.ClusterWarning, match="has the value") as warned:
        mmcnb.MaximumMarginClustering(3, random_state=0).fit(X)
    sentence = next(
        str(one.message) for one in warned if "has the value" in str(one.message)
    )
    call = sentence.partition(" or ")[2].removesuffix(".")
    rows = eval(call, {"mmcnb": mmcnb, "X": X})
    with warnings.catch_warnings(record=True) as later:
        warnings.simplefilter("always")
        mmcnb.MaximumMarginClustering(3, random_state=0).fit(rows)
    assert not any("has the value" in str(one.message) for one in later)


def test_classes_beside_rows_stay_in_a_store(tmp_path):
    with create_dense_store(tmp_path / "a.zarr", 3) as writer:
        writer.append(rows_with(MARK), y=np.arange(N) % 3)
    convert(tmp_path / "a.zarr", tmp_path / "b.zarr", na_values=MARK)
    classes = np.asarray(open_class_labels(tmp_path / "b.zarr"))
    np.testing.assert_array_equal(classes, np.arange(N) % 3)


def test_what_dense_rows_cannot_have_is_refused():
    rows = rows_with(MARK)
    with one_sentence(
        "columns applies to data frames and tables only, and a ndarray is neither"
    ):
        mmcnb.read_table(rows, columns=[1])
    with one_sentence("sparse rows, and na_values and missing apply to dense"):
        mmcnb.read_table(scipy.sparse.csr_array(rows), na_values=MARK)
    with one_sentence(r"row \d+, column 1: the cell is -999.9, a marker of missing"):
        mmcnb.read_table(rows, na_values=MARK, missing="refuse")
    with pytest.raises(InputError, match="infinite"):
        mmcnb.read_table(np.array([[1.0, np.inf], [2.0, 3.0]]))
    for one in (np.inf, -np.inf):
        X = np.where(rows == rows[4, 0], one, rows)
        with pytest.warns(mmcnb.ClusterWarning, match="1 in '0'"):
            mmcnb.CPMMC(random_state=0).fit(mmcnb.read_table(X, na_values=[one, MARK]))


def test_marks_that_are_no_numbers_are_refused_for_arrays():
    with one_sentence("has no number, but X has only numbers"):
        mmcnb.read_table(np.eye(4), na_values=["n.v."])
