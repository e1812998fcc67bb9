"""What a file says is what the store holds; what cannot be read is named by line, row or column."""

import re
import subprocess
import sys
import textwrap
import zipfile
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import zarr

from mmcnb import open_samples
from mmcnb.errors import MemoryLimitError
from mmcnb.stores import convert, describe_store, open_class_labels, verify_store
from tests.samples.common import COMPRESS, one_sentence, rows_of

ODD_TEXT = "# a comment\n\n+1 1:2 3:-4e-20 # at the end\n   # another\n-1\n1.0 2:.5\n-1e0 3:1e+3\n+2"


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize(
    ("name", "text", "options", "layout", "rows", "labels"),
    [
        (
            "a.svm",
            "1 1:2 2:3\n2 1:4 3:1\n",
            {},
            "dense",
            [[2, 3, 0], [4, 0, 1]],
            [1, 2],
        ),
        ("a.svm", "1 1:2 2:3\n", {"layout": "csr"}, "csr", [[2, 3]], [1]),
        (
            "a.libsvm",
            "1 1:2\r\n2 3:4\r\n",
            {"n_features": 4},
            "csr",
            [[2, 0, 0, 0], [0, 0, 4, 0]],
            [1, 2],
        ),
        (
            "a.libsvm",
            "1 1:2\n2 3:4\n",
            {"layout": "dense"},
            "dense",
            [[2, 0, 0], [0, 0, 4]],
            [1, 2],
        ),
        ("a.svm", "1 0:2 2:3\n", {"zero_based": True}, "dense", [[2, 0, 3]], [1]),
        (
            "a9a",
            "1 1:0.1 4:1e99\n",
            {"dtype": "float64"},
            "csr",
            [[0.1, 0, 0, 1e99]],
            [1],
        ),
        (
            "a9a.xz",
            ODD_TEXT,
            {"dtype": "float64"},
            "csr",
            [[2, 0, -4e-20], [0, 0, 0], [0, 0.5, 0], [0, 0, 1000], [0, 0, 0]],
            [1, -1, 1, -1, 2],
        ),
    ],
)
def test_libsvm_text(tmp_path, name, text, options, layout, rows, labels):
    source = tmp_path / name
    source.write_bytes(COMPRESS[".xz" if name.endswith(".xz") else ""](text.encode()))
    convert(source, tmp_path / "a.zarr", **options)
    assert describe_store(tmp_path / "a.zarr")["layout"] == layout
    assert rows_of(tmp_path / "a.zarr").tolist() == rows
    assert open_class_labels(tmp_path / "a.zarr").tolist() == labels
    assert verify_store(tmp_path / "a.zarr")["checksummed"]


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize(
    ("line", "match"),
    [
        ("1 0:1", "index 0 needs --zero-based"),
        ("1 2:1 2:3", "unique.*increasing indices"),
        ("1 3:1 2:3", "sorted.*increasing indices"),
        ("1 2", "index:value"),
        ("1 a:2", "'a'.*index:value"),
        ("1 2:x", "'x'"),
        ("1 2:", "''"),
        ("1 2:nan", "a value is not a finite number"),
        ("1 2:1e99", "a value is not a finite number of float32"),
        ("1 -3:1", "index -3"),
        ("1 99999999999:1", "too large"),
        ("1 700:1", "more than 60 columns"),
        ("x 1:2", "'x'"),
        ("nan 1:2", "its label is not an integer"),
        ("1 1:1_000", ""),
        ("1_0 1:1", ""),
        ("1 1_0:1", ""),
        ("1 1:٣", ""),
    ],
)
def test_malformed_libsvm_names_the_line(tmp_path, line, match):
    source = tmp_path / "a.libsvm"
    source.write_text(
        "1 1:2 60:3 # a_note\n\n" * 20 + f"{line}\n1 1:1\n", encoding="utf-8"
    )
    with one_sentence(rf"a\.libsvm, line 41 is not LIBSVM text .*{match}"):
        convert(source, tmp_path / "a.zarr", n_features=60)
    assert [path.name for path in tmp_path.iterdir()] == ["a.libsvm"]


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz", ".zst"])
@pytest.mark.parametrize("kind", ["libsvm", "csv"])
def test_damaged_compression(tmp_path, rng, ending, kind):
    path = tmp_path / f"a.{kind}{ending}"
    form = "1 1:{} 2:{}\n" if kind == "libsvm" else "{},{}\n"
    text = "".join(form.format(a, b) for a, b in rng.normal(size=(2000, 2)).round(4))
    whole = COMPRESS[ending](text.encode())
    spoiled = bytearray(whole)
    spoiled[len(whole) // 2] ^= 255
    contents = [whole[:-8], whole[: len(whole) // 2], b"junk"]
    if ending != ".zst":  # such files need not have a checksum
        contents.append(bytes(spoiled))
    for content in contents:
        path.write_bytes(content)
        with one_sentence(rf"a\.{kind}{ending} cannot be .*: get the file again"):
            convert(path, tmp_path / "a.zarr")
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


# --- CSV ------------------------------------------------------------------------------


@pytest.mark.parametrize("label_column", ["kind", 1, -2])
def test_class_names_are_numbered_and_kept(tmp_path, label_column):
    source = tmp_path / "a.csv"
    source.write_text(
        'size, kind ,weight\n1,"a, b",2.5\n-3,small,4e1\n5,"a, b",6\n7,"c\nd",8\n'
    )
    convert(source, tmp_path / "a.zarr", label_column=label_column)
    assert rows_of(tmp_path / "a.zarr").tolist() == [[1, 2.5], [-3, 40], [5, 6], [7, 8]]
    convert(tmp_path / "a.zarr", tmp_path / "b.zarr")
    for name in ("a.zarr", "b.zarr"):
        assert open_class_labels(tmp_path / name).tolist() == [0, 1, 0, 2]
        assert describe_store(tmp_path / name)["class_counts"] == {
            "a, b": 2,
            "small": 1,
            "c\nd": 1,
        }


def test_a_table_of_many_zeros_stays_dense(tmp_path):
    values = np.eye(50, 8)
    pd.DataFrame(values).add_prefix("x").to_csv(tmp_path / "rows.csv", index=False)
    convert(tmp_path / "rows.csv", tmp_path / "rows.zarr")
    rows = open_samples(tmp_path / "rows.zarr")
    assert not rows.is_sparse
    np.testing.assert_array_equal(rows.block(0, 50), values)


def test_whole_number_labels_are_kept(tmp_path):
    (tmp_path / "a.tsv").write_text("-1\t2\n7\t3\n-1.0\t4\n")
    convert(tmp_path / "a.tsv", tmp_path / "a.zarr", label_column=0)
    assert open_class_labels(tmp_path / "a.zarr").tolist() == [-1, 7, -1]
    assert rows_of(tmp_path / "a.zarr").tolist() == [[2], [3], [4]]


# --- NumPy, SciPy, other stores -------------------------------------------------------


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize(
    ("dtype", "order", "stored"),
    [
        ("u1", "C", "u1"),
        ("i2", "F", "i2"),
        ("i8", "C", "f8"),
        ("<f2", "F", "f4"),
        (">f2", "C", "f4"),
        ("f4", "C", "f4"),
        ("f8", "F", "f8"),
        (">f4", "F", "f4"),
        ("?", "C", "f4"),
        ("g", "C", "f8"),
    ],
)
def test_npy_and_npz(rng, tmp_path, dtype, order, stored):
    X = np.asarray(rng.integers(0, 2, size=(200, 5)), dtype=dtype, order=order)
    y = rng.integers(-2, 3, size=200)
    np.save(tmp_path / "a.npy", X)
    np.savez(tmp_path / "b.npz", X=X, y=y)
    np.savez_compressed(tmp_path / "c.npz", X)
    for name in ("a.npy", "b.npz", "c.npz"):
        convert(tmp_path / name, tmp_path / f"{name}.zarr")
        assert np.array_equal(rows_of(tmp_path / f"{name}.zarr"), X)
        assert open_samples(tmp_path / f"{name}.zarr").digest == open_samples(X).digest
    assert np.array_equal(open_class_labels(tmp_path / "b.npz.zarr"), y)
    assert zarr.open_array(tmp_path / "a.npy.zarr/X", mode="r").dtype == stored
    convert(tmp_path / "a.npy", tmp_path / "sparse.zarr", layout="csr")
    assert np.array_equal(rows_of(tmp_path / "sparse.zarr"), X)


@pytest.mark.parametrize("form", ["csc", "coo", "dia", "bsr"])
def test_a_saved_sparse_matrix_is_saved_again_as_told(csr, tmp_path, form):
    path = tmp_path / "a.npz"
    scipy.sparse.save_npz(path, csr[:30].asformat(form))
    with one_sentence(rf"a sparse matrix as {form}.*save_npz\(path, X\.tocsr\(\)\)"):
        convert(path, tmp_path / "a.zarr")
    scipy.sparse.save_npz(path, scipy.sparse.load_npz(path).tocsr())
    convert(path, tmp_path / "a.zarr")
    assert open_samples(tmp_path / "a.zarr").digest == open_samples(csr[:30]).digest


def test_of_an_npz_only_the_arrays_of_rows_are_read(rng, tmp_path):
    X = rng.standard_normal((40, 3))
    path = tmp_path / "a.npz"
    np.savez(path, X=X, y=np.arange(40))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("other.npy", b"no array")
    convert(path, tmp_path / "a.zarr")
    assert np.array_equal(rows_of(tmp_path / "a.zarr"), X)
    assert open_class_labels(tmp_path / "a.zarr").tolist() == list(range(40))


def test_an_npz_that_needs_more_memory_than_is_free_is_refused_before_it_is_read(
    tmp_path, monkeypatch
):
    import psutil

    np.savez_compressed(tmp_path / "a.npz", X=np.zeros((2**14, 8)))
    monkeypatch.setattr(
        psutil, "virtual_memory", lambda: SimpleNamespace(available=2**20)
    )
    with one_sentence(r"a\.npz needs 1.*MiB of memory.*: save it as \.npy.*\.$"):
        convert(tmp_path / "a.npz", tmp_path / "a.zarr")
    assert not (tmp_path / "a.zarr").exists()


BAD_ARRAYS = {
    "two.npz": ({"A": np.eye(2), "B": np.eye(2)}, "no array X"),
    "y.npz": ({"X": np.eye(3), "y": [1, 2]}, "y has shape"),
    "part.npz": ({"X": np.eye(2), "y": [0.5, 1]}, "not integers"),
    "flat.npy": (np.zeros(3), "1-D"),
    "text.npy": (np.array([["a"]]), "text"),
    "objects.npy": (np.array([[None]]), "objects"),
    "nan.npy": (np.array([[1, 2], [3, np.nan]]), "NaN at row 1, column 1 of .*nan.npy"),
    "junk.npz": (b"junk", "cannot be read as .npz"),
    "junk.npy": (b"junk", "cannot be read as .npy"),
}


@pytest.mark.parametrize("name", BAD_ARRAYS)
def test_arrays_that_cannot_be_used(tmp_path, name):
    content, match = BAD_ARRAYS[name]
    if isinstance(content, bytes):
        (tmp_path / name).write_bytes(content)
    elif isinstance(content, dict):
        np.savez(tmp_path / name, **content)
    else:
        np.save(tmp_path / name, content, allow_pickle=True)
    with one_sentence(match):
        convert(tmp_path / name, tmp_path / "out.zarr")
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("layout", ["auto", "dense", "csr"])
def test_foreign_stores_and_arrays_in_memory_get_checksums(
    X, csr, write_csr, tmp_path, layout
):
    zarr.create_array(tmp_path / "d.zarr", data=X, chunks=(333, 3), zarr_format=2)
    counts = write_csr(
        csr.data, csr.indices, csr.indptr, csr.shape, path="layers/counts"
    )
    out = tmp_path / "out.zarr"
    for source, element, values, auto in (
        (tmp_path / "d.zarr", None, X, "dense"),
        (X, None, X, "dense"),
        (counts, "layers/counts", csr.toarray(), "csr"),
    ):
        convert(source, out, element=element, layout=layout, overwrite=True)
        report = describe_store(out)
        assert report["checksummed"]
        assert report["layout"] == (auto if layout == "auto" else layout)
        assert np.array_equal(rows_of(out), values)


# --- options, limits, files -----------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "options", "match"),
    [
        ("a.svm", "1 1:1\n", {"layout": "coo"}, "layout='coo'"),
        ("a.svm", "1 1:1\n", {"dtype": "int32"}, "dtype='int32'"),
        ("a.svm", "1 1:1\n", {"n_features": 0}, "n_features=0"),
        ("a.svm", "1 1:1\n", {"memory_limit": "512MiB"}, "memory_limit='512MiB'"),
        (
            "a.svm",
            "1 1:1\n",
            {"label_column": 0},
            r"label_column applies to CSV.*a\.svm is not one: leave it out",
        ),
        ("a.svm", "# nothing\n", {}, r"0 sample\(s\)"),
        ("a.abc", "hello world\n", {}, r"unknown format.*\.csv"),
        ("a.csv", None, {}, "does not exist"),
    ],
)
def test_options_and_files_that_do_not_suit(tmp_path, name, text, options, match):
    if text is not None:
        (tmp_path / name).write_text(text)
    with one_sentence(match):
        convert(tmp_path / name, tmp_path / "a.zarr", **options)
    assert not (tmp_path / "a.zarr").exists()


def test_an_output_is_replaced_only_as_told_and_never_its_source(tmp_path):
    source = tmp_path / "a.svm"
    source.write_text("1 1:1\n")
    with one_sentence("overlaps"):
        convert(source, source, overwrite=True)
    convert(source, tmp_path / "a.zarr")
    with one_sentence("overwrite=True"):
        convert(source, tmp_path / "a.zarr")
    source.write_text("1 1:1\n2 1:2\n")
    convert(source, tmp_path / "a.zarr", overwrite=True)
    assert open_samples(tmp_path / "a.zarr").n_samples == 2


@pytest.mark.parametrize("name", ["a.svm", "a.npy"])
def test_memory_limit_too_small_names_one_that_works(tmp_path, name):
    np.save(tmp_path / "a.npy", np.eye(3))
    (tmp_path / "a.svm").write_text("1 1:1\n")
    with one_sentence("least that works is", MemoryLimitError) as caught:
        convert(tmp_path / name, tmp_path / "a.zarr", memory_limit=2**20)
    least = int(re.search(r"works is (\d+) MiB", str(caught.value))[1]) * 2**20
    convert(tmp_path / name, tmp_path / "a.zarr", memory_limit=least)
    assert open_samples(tmp_path / "a.zarr").checksummed


NIGHTLY = pytest.mark.nightly
FORMS = {
    "csv": "{},{},{},{}\n",
    "libsvm": "1 1:{} 2:{} 3:{} 4:{}\n",
}


@pytest.mark.slow
@pytest.mark.skipif(
    sys.platform != "linux", reason="other systems keep no count of the most memory"
)
@pytest.mark.parametrize(
    "kind",
    [
        "csv",
        "npy",
        *(pytest.param(kind, marks=NIGHTLY) for kind in ("libsvm", "parquet")),
    ],
)
def test_memory_does_not_grow_with_the_file(tmp_path, kind):
    """In processes of their own, as memory of pyarrow is not Python's."""
    program = """
        import re, sys
        from pathlib import Path
        from mmcnb.stores import convert
        convert(sys.argv[1], sys.argv[2])
        print(re.search("VmHWM: *(.*) kB", Path("/proc/self/status").read_text())[1])
    """
    X = np.random.default_rng(0).normal(size=(100_000, 4)).round(2)

    def peak_of_converting(times):
        source = tmp_path / f"{times}.{kind}"
        if kind == "npy":
            np.save(source, np.tile(X, (3 * times, 1)))
        elif kind == "parquet":
            frame = pd.DataFrame(np.tile(X, (3 * times, 1))).add_prefix("x")
            frame.to_parquet(source, row_group_size=len(frame), use_dictionary=False)
        else:
            source.write_text(
                "".join(FORMS[kind].format(*row) for row in X.tolist()) * times
            )
        program_text = textwrap.dedent(program)
        peaks = []
        for attempt in range(3):
            store = source.with_suffix(f".{attempt}.zarr")
            command = [sys.executable, "-c", program_text, source, store]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            peaks.append(int(done.stdout) * 1024)
        return min(peaks)  # pyarrow keeps more or less of what it has freed

    # A file of so many more rows has 46 MiB more of numbers. The pools of pyarrow differ
    # by up to 16 MiB from run to run.
    assert peak_of_converting(20) - peak_of_converting(5) < 30 * 2**20
