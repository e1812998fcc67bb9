"""What a file says is what the store holds; what cannot be read is named by line, row or column."""

import bz2
import gzip
import lzma
import os
import re
import tracemalloc
import zipfile
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import zarr

from mmcnb._config import parse_bytes
from mmcnb.errors import InputError, MemoryLimitError
from mmcnb.samples import _npy as npy_module
from mmcnb.samples import open_samples
from mmcnb.stores import convert, describe_store, open_class_labels, verify_store

COMPRESS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def dense(path):
    """All rows of a store as a dense array."""
    samples = open_samples(path)
    block = samples.block(0, samples.n_samples)
    if not samples.is_sparse:
        return block
    return scipy.sparse.csr_array(block[:3], shape=(samples.n_samples, samples.n_features)).toarray()


def parse_libsvm(text, n_features, dtype=np.float32):
    """Naive parse of LIBSVM text: dense rows and labels."""
    rows, labels = [], []
    for line in text.splitlines():
        fields = line.split("#")[0].split()
        if fields:
            row = np.zeros(n_features, dtype)
            for field in fields[1:]:
                index, value = field.split(":")
                row[int(index) - 1] = float(value)
            rows.append(row)
            labels.append(int(float(fields[0])))
    return np.array(rows), labels


@pytest.fixture
def libsvm_text(rng):
    """LIBSVM text with comments, blank lines, empty rows and numbers of all forms."""
    lines = ["# a comment", ""]
    for row in range(500):
        columns = np.sort(rng.choice(60, size=rng.integers(0, 12), replace=False)) + 1
        values = rng.normal(size=len(columns)) * 10.0 ** rng.integers(-20, 20, size=len(columns))
        label = ["+1", "-1", "1.0", "-1e0"][row % 4]
        lines.append(
            " ".join([label, *(f"{c}:{v!r}" for c, v in zip(columns, values.tolist(), strict=True))])
        )
        if row % 50 == 0:
            lines += ["", "   # another"]
    lines.append("1 60:1 # at the end")
    return "\n".join(lines)


@pytest.fixture(params=["one piece", "many pieces"])
def pieces(request, monkeypatch):
    """Texts come whole, and cut into small pieces."""
    if request.param == "many pieces":
        from mmcnb.samples import _npy, _text

        monkeypatch.setattr(_text, "PIECE_BYTES", 100)
        monkeypatch.setattr(_npy, "STEP_BYTES", 1000)


@pytest.mark.slow
@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize(
    ("name", "ending"),
    [("a.libsvm", ""), ("a9a", ""), ("a9a", ".gz"), ("a.libsvm", ".bz2"), ("a9a", ".xz")],
)
def test_libsvm_equals_naive_parse(libsvm_text, tmp_path, ending, name):
    X, y = parse_libsvm(libsvm_text, 60)
    source = tmp_path / (name + ending)
    source.write_bytes(COMPRESS[ending](libsvm_text.encode()))
    for layout in ("auto", "csr", "dense"):
        out = tmp_path / f"{layout}.zarr"
        convert(source, out, layout=layout)
        assert describe_store(out)["layout"] == ("dense" if layout == "dense" else "csr")
        assert np.array_equal(dense(out), X)
        assert open_class_labels(out).tolist() == y
        assert verify_store(out)["checksummed"]
    assert {path.name for path in tmp_path.iterdir()} == {source.name, "auto.zarr", "csr.zarr", "dense.zarr"}


def test_line_ends_of_windows_and_float64(libsvm_text, tmp_path):
    (tmp_path / "a.svm").write_bytes(libsvm_text.replace("\n", "\r\n").encode())
    convert(tmp_path / "a.svm", tmp_path / "a.zarr", dtype="float64", n_features=80)
    assert np.array_equal(dense(tmp_path / "a.zarr"), parse_libsvm(libsvm_text, 80, np.float64)[0])


def test_dense_libsvm_becomes_dense(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:2 2:3\n2 1:4 3:1\n")
    convert(tmp_path / "a.svm", tmp_path / "a.zarr")
    assert describe_store(tmp_path / "a.zarr")["layout"] == "dense"
    assert dense(tmp_path / "a.zarr").tolist() == [[2, 3, 0], [4, 0, 1]]


def test_columns_from_zero(tmp_path):
    (tmp_path / "a.svm").write_text("1 0:2 2:3\n")
    convert(tmp_path / "a.svm", tmp_path / "a.zarr", zero_based=True)
    assert dense(tmp_path / "a.zarr").tolist() == [[2, 0, 3]]


LIBSVM_FAULTS = [
    ("1 0:1", "index 0 needs --zero-based"),
    ("1 2:1 2:3", "unique.*columns rise"),
    ("1 3:1 2:3", "sorted.*columns rise"),
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
    ("nan 1:2", "its label is not a whole number"),
    ("0.5 1:2", "its label is not a whole number"),
    ("1,2 1:2", "'1,2'"),
]


@pytest.mark.slow
@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize(("line", "match"), LIBSVM_FAULTS)
def test_malformed_libsvm_names_the_line(libsvm_text, tmp_path, line, match):
    lines = libsvm_text.split("\n")
    lines.insert(300, line)
    (tmp_path / "a.libsvm").write_text("\n".join(lines))
    with pytest.raises(InputError, match=rf"a\.libsvm, line 301 is no LIBSVM text .*{match}"):
        convert(tmp_path / "a.libsvm", tmp_path / "a.zarr", n_features=60)
    assert [path.name for path in tmp_path.iterdir()] == ["a.libsvm"]


DATA = os.environ.get("MMCNB_DATA_DIR", "")


@pytest.mark.slow
@pytest.mark.real_data
@pytest.mark.skipif(not DATA, reason="MMCNB_DATA_DIR does not name the real data")
@pytest.mark.parametrize(("name", "width"), [("adult/a9a.xz", 123), ("usps/usps.t.bz2", 256)])
def test_real_libsvm_equals_naive_parse(tmp_path, name, width):
    opener = lzma.open if name.endswith(".xz") else bz2.open
    with opener(Path(DATA, name), "rt") as file:
        X, y = parse_libsvm(file.read(), width)
    convert(Path(DATA, name), tmp_path / "a.zarr")
    assert np.array_equal(dense(tmp_path / "a.zarr"), X)
    assert open_class_labels(tmp_path / "a.zarr").tolist() == y


# --- CSV -----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize("ending", COMPRESS)
@pytest.mark.parametrize("header", [True, False])
def test_csv_equals_its_numbers(rng, tmp_path, ending, header):
    X = rng.normal(size=(300, 4))
    lines = ["a,b,c,d"] * header + [",".join(map(repr, row)) for row in X.tolist()]
    source = tmp_path / f"a.csv{ending}"
    source.write_bytes(COMPRESS[ending](("\n".join(lines) + "\n\n").encode()))
    convert(source, tmp_path / "a.zarr")
    convert(source, tmp_path / "b.zarr", layout="csr", dtype="float64")
    assert np.array_equal(dense(tmp_path / "a.zarr"), X.astype(np.float32))
    assert np.array_equal(dense(tmp_path / "b.zarr"), X)
    assert describe_store(tmp_path / "b.zarr")["layout"] == "csr"
    assert open_class_labels(tmp_path / "a.zarr") is None


TABLE = "size, kind ,weight\n1,big,2.5\n-3,small,4e1\n5,big,6\n"


@pytest.mark.parametrize("label_column", ["kind", 1, -2])
def test_class_names_are_numbered_and_kept(tmp_path, label_column):
    (tmp_path / "a.csv").write_text(TABLE)
    convert(tmp_path / "a.csv", tmp_path / "a.zarr", label_column=label_column)
    assert dense(tmp_path / "a.zarr").tolist() == [[1, 2.5], [-3, 40], [5, 6]]
    assert open_class_labels(tmp_path / "a.zarr").tolist() == [0, 1, 0]
    assert describe_store(tmp_path / "a.zarr")["class_counts"] == {"big": 2, "small": 1}
    convert(tmp_path / "a.zarr", tmp_path / "b.zarr")
    assert describe_store(tmp_path / "b.zarr")["class_counts"] == {"big": 2, "small": 1}


def test_whole_number_labels_are_kept(tmp_path):
    (tmp_path / "a.tsv").write_text("-1\t2\n7\t3\n-1.0\t4\n")
    convert(tmp_path / "a.tsv", tmp_path / "a.zarr", label_column=0)
    assert open_class_labels(tmp_path / "a.zarr").tolist() == [-1, 7, -1]
    assert dense(tmp_path / "a.zarr").tolist() == [[2], [3], [4]]


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize(
    ("line", "label_column", "match"),
    [
        ("1,big", "kind", "line 5: 2 cells, but the first line has 3"),
        ("1,big,2,3", "kind", "line 5: 4 cells, but"),
        ("1,big,?", "kind", r"line 5, column 2 .*has no value"),
        ("1,big,x", "kind", r"line 5, column 2 \('weight'\): 'x' is not a number"),
        ("1,big,", "kind", "line 5, column 2 .*has no value.*--missing"),
        ("1,big,nan", "kind", "line 5, column 2 .*has no value"),
        ("1,2,3", None, r"line 2, column 1 \('kind'\): 'big' is not a number.*--label-column"),
        ("1,2,3", "colour", "no column is named 'colour' among size, kind, weight"),
        ("1,2,3", 9, "no column 9 among 3"),
        ("1,2,3", -4, "no column -4 among 3"),
    ],
)
def test_malformed_csv_names_line_and_column(tmp_path, line, label_column, match):
    (tmp_path / "a.csv").write_text(TABLE + line + "\n1,big,2\n" * 20)
    options = {"label_column": label_column, "missing": "refuse", "categories": "refuse"}
    with pytest.raises(InputError, match=match):
        convert(tmp_path / "a.csv", tmp_path / "a.zarr", **options)
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


def test_labels_must_not_change_their_kind(tmp_path):
    (tmp_path / "a.csv").write_text("1,0\n2,1\n3,x\n")
    with pytest.raises(InputError, match="line 3, column 1: label 'x' is not a whole number as those before"):
        convert(tmp_path / "a.csv", tmp_path / "a.zarr", label_column=1)


def test_quotes_may_hold_commas_and_line_breaks(tmp_path):
    (tmp_path / "a.csv").write_text('name,x\n"a, b",1\n"c\nd",2\n')
    convert(tmp_path / "a.csv", tmp_path / "a.zarr", label_column="name")
    assert describe_store(tmp_path / "a.zarr")["class_counts"] == {"a, b": 1, "c\nd": 1}


@pytest.mark.parametrize(
    ("text", "match"), [("", "no rows"), ("a,b\n", "a header and no rows"), ("\n\n", "no rows")]
)
def test_tables_without_rows(tmp_path, text, match):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(InputError, match=match):
        convert(tmp_path / "a.csv", tmp_path / "a.zarr")


# --- NumPy, SciPy, other stores ------------------------------------------------------------------


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize("dtype", ["u1", "i2", "i8", "f2", "f4", "f8", ">f4", "?"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_and_npz(rng, tmp_path, dtype, order):
    X = np.asarray(rng.integers(0, 2, size=(200, 5)), dtype=dtype, order=order)
    y = rng.integers(-2, 3, size=200)
    np.save(tmp_path / "a.npy", X)
    np.savez(tmp_path / "b.npz", X=X, y=y)
    np.savez_compressed(tmp_path / "c.npz", X)
    for name in ("a.npy", "b.npz", "c.npz"):
        convert(tmp_path / name, tmp_path / f"{name}.zarr")
        samples = open_samples(tmp_path / f"{name}.zarr")
        assert samples.digest == open_samples(X).digest
        assert np.array_equal(samples.block(0, 200), X)
    assert np.array_equal(open_class_labels(tmp_path / "b.npz.zarr"), y)
    small = np.dtype(dtype).kind in "iu" and np.dtype(dtype).itemsize < 4
    stored = zarr.open_array(tmp_path / "a.npy.zarr/X", mode="r").dtype
    assert stored == (np.dtype(dtype) if small else samples.dtype)


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("layout", ["auto", "dense", "csr"])
def test_sparse_npz(csr, tmp_path, compressed, layout):
    csr = csr[:300]
    scipy.sparse.save_npz(tmp_path / "a.npz", csr, compressed=compressed)
    convert(tmp_path / "a.npz", tmp_path / "a.zarr", layout=layout)
    assert describe_store(tmp_path / "a.zarr")["layout"] == ("dense" if layout == "dense" else "csr")
    assert np.array_equal(dense(tmp_path / "a.zarr"), csr.toarray())


def test_of_an_npz_only_the_arrays_of_rows_are_read(rng, tmp_path, monkeypatch):
    X = rng.standard_normal((40, 3))
    np.savez_compressed(tmp_path / "a.npz", X=X, other=np.zeros(2**20), y=np.arange(40))
    read = []
    real = npy_module.read_member
    monkeypatch.setattr(npy_module, "read_member", lambda *given: read.append(given[1]) or real(*given))
    convert(tmp_path / "a.npz", tmp_path / "a.zarr")
    assert sorted(read) == ["X.npy", "y.npy"]
    assert np.array_equal(dense(tmp_path / "a.zarr"), X)


def test_an_npz_that_needs_more_memory_than_is_free_is_refused_before_it_is_read(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "a.npz", X=np.zeros((2**14, 8)))
    monkeypatch.setattr(npy_module, "available_memory", lambda: 2**20)
    monkeypatch.setattr(npy_module, "read_member", None)
    with pytest.raises(
        InputError, match=r"^[^\n]*a\.npz needs 1[^\n]*MiB of memory[^\n]*: save it as \.npy[^\n]*\.$"
    ):
        convert(tmp_path / "a.npz", tmp_path / "a.zarr")
    assert not (tmp_path / "a.zarr").exists()


@pytest.mark.parametrize("more", [-1, 1, 2**20])
def test_an_npz_whose_header_has_another_size_is_refused(tmp_path, more):
    header = BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (40 + more, 3)}
    )
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("X.npy", header.getvalue() + np.ones((40, 3)).tobytes())
    with pytest.raises(InputError, match=r"cannot be read as \.npz \(its header claims [\d,]+ bytes"):
        convert(tmp_path / "a.npz", tmp_path / "a.zarr")
    assert not (tmp_path / "a.zarr").exists()


def test_npz_that_cannot_be_used(csr, tmp_path):
    scipy.sparse.save_npz(tmp_path / "csc.npz", csr.tocsc())
    np.savez(tmp_path / "two.npz", A=np.eye(2), B=np.eye(2))
    np.savez(tmp_path / "y.npz", X=np.eye(3), y=[1, 2])
    np.savez(tmp_path / "part.npz", X=np.eye(2), y=[0.5, 1])
    (tmp_path / "junk.npz").write_bytes(b"junk")
    (tmp_path / "junk.npy").write_bytes(b"junk")
    np.save(tmp_path / "flat.npy", np.zeros(3))
    np.save(tmp_path / "text.npy", np.array([["a"]]))
    np.save(tmp_path / "objects.npy", np.array([[None]]), allow_pickle=True)
    X = np.zeros((500, 2))
    X[321, 1] = np.nan
    np.save(tmp_path / "nan.npy", X)
    faults = {
        "csc.npz": "as csc", "two.npz": "no array X", "y.npz": "y has shape", "part.npz": "not whole",
        "junk.npz": "cannot be read", "junk.npy": "cannot be read as .npy", "flat.npy": "1-D",
        "text.npy": "text",
        "objects.npy": "objects", "nan.npy": "NaN at row 321, column 1 of .*nan.npy",
    }  # fmt: skip
    for name, match in faults.items():
        with pytest.raises(InputError, match=match):
            convert(tmp_path / name, tmp_path / "out.zarr")
    assert {path.name for path in tmp_path.iterdir()} == set(faults)


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["auto", "dense", "csr"])
def test_foreign_stores_get_checksums(X, csr, write_csr, tmp_path, layout):
    array = zarr.create_array(
        tmp_path / "d.zarr", shape=X.shape, dtype=X.dtype, chunks=(333, 3), zarr_format=2
    )
    array[:] = X
    convert(tmp_path / "d.zarr", tmp_path / "d2.zarr", layout=layout)
    assert np.array_equal(dense(tmp_path / "d2.zarr"), X)
    convert(write_csr(csr.data, csr.indices, csr.indptr, csr.shape), tmp_path / "s2.zarr", layout=layout)
    assert np.array_equal(dense(tmp_path / "s2.zarr"), csr.toarray())
    for name, auto in (("d2.zarr", "dense"), ("s2.zarr", "csr")):
        report = describe_store(tmp_path / name)
        assert report["checksummed"]
        assert report["layout"] == (auto if layout == "auto" else layout)


def test_elements_and_arrays_in_memory(X, csr, write_csr, tmp_path):
    path = write_csr(csr.data, csr.indices, csr.indptr, csr.shape, path="layers/counts")
    convert(path, tmp_path / "a.zarr", element="layers/counts")
    assert open_samples(tmp_path / "a.zarr").digest == open_samples(csr).digest
    convert(X, tmp_path / "b.zarr")
    assert open_samples(tmp_path / "b.zarr").digest == open_samples(X).digest


# --- options, limits, files ----------------------------------------------------------------------


def test_options_that_do_not_suit(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1\n")
    for options, match in [
        ({"layout": "coo"}, "layout='coo'"),
        ({"dtype": "int32"}, "dtype='int32'"),
        ({"n_features": 0}, "n_features=0"),
        ({"memory_limit": "512MiB"}, "memory_limit='512MiB'"),
        ({"label_column": 0}, "label_column"),
    ]:
        with pytest.raises(InputError, match=match):
            convert(tmp_path / "a.svm", tmp_path / "a.zarr", **options)
    with pytest.raises(InputError, match="overlaps"):
        convert(tmp_path / "a.svm", tmp_path / "a.svm", overwrite=True)
    with pytest.raises(InputError, match="does not exist"):
        convert(tmp_path / "none.csv", tmp_path / "a.zarr")
    (tmp_path / "empty.svm").write_text("# nothing\n")
    with pytest.raises(InputError, match=r"0 sample\(s\)"):
        convert(tmp_path / "empty.svm", tmp_path / "a.zarr")
    (tmp_path / "a.txt").write_text("hello world\n")
    with pytest.raises(InputError, match=r"no known format.*\.csv"):
        convert(tmp_path / "a.txt", tmp_path / "a.zarr")
    assert not (tmp_path / "a.zarr").exists()


def test_output_exists(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1\n")
    convert(tmp_path / "a.svm", tmp_path / "a.zarr")
    with pytest.raises(InputError, match="--overwrite"):
        convert(tmp_path / "a.svm", tmp_path / "a.zarr")
    (tmp_path / "a.svm").write_text("1 1:1\n2 1:2\n")
    convert(tmp_path / "a.svm", tmp_path / "a.zarr", overwrite=True)
    assert open_samples(tmp_path / "a.zarr").n_samples == 2


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz"])
@pytest.mark.parametrize("kind", ["libsvm", "csv"])
def test_damaged_compression(tmp_path, ending, kind):
    text = "1 1:1 2:2\n" * 5000 if kind == "libsvm" else "1,2\n" * 5000
    whole = COMPRESS[ending](text.encode())
    spoiled = bytearray(whole)
    spoiled[len(whole) // 2] ^= 255
    for data in (whole[: len(whole) // 2], bytes(spoiled), b"junk"):
        (tmp_path / f"a.{kind}{ending}").write_bytes(data)
        with pytest.raises(InputError, match=rf"a\.{kind}{ending} cannot be read \(.*\): get the file again"):
            convert(tmp_path / f"a.{kind}{ending}", tmp_path / "a.zarr")
    assert [path.name for path in tmp_path.iterdir()] == [f"a.{kind}{ending}"]


def test_text_that_is_not_utf8(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"a,b\n1,\xff\n")
    with pytest.raises(InputError, match="not UTF-8"):
        convert(tmp_path / "a.csv", tmp_path / "a.zarr")


def test_memory_limit_too_small_names_one_that_works(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1\n")
    with pytest.raises(MemoryLimitError, match="least that works") as caught:
        convert(tmp_path / "a.svm", tmp_path / "a.zarr", memory_limit=2**20)
    least = parse_bytes(re.search(r"works is (\d+ MiB)", str(caught.value))[1])
    np.save(tmp_path / "a.npy", np.eye(3))
    with pytest.raises(MemoryLimitError, match="least that works"):
        convert(tmp_path / "a.npy", tmp_path / "a.zarr", memory_limit=2**20)
    convert(tmp_path / "a.svm", tmp_path / "a.zarr", memory_limit=least)
    assert open_samples(tmp_path / "a.zarr").n_samples == 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["libsvm", "csv", "npy"])
def test_memory_does_not_grow_with_the_file(tmp_path, monkeypatch, kind):
    from mmcnb.samples import _npy, _text
    from mmcnb.stores import _write
    from mmcnb.tables.rows import _ThinnedRows

    monkeypatch.setattr(_text, "PIECE_BYTES", 2**16)
    monkeypatch.setattr(_npy, "STEP_BYTES", 2**16)
    monkeypatch.setattr(_write, "chunk_rows_for", lambda row_bytes: 2**10)
    monkeypatch.setattr(_write, "CSR_CHUNK_VALUES", 2**14)
    monkeypatch.setattr(_ThinnedRows, "most_numbers", 2**14)
    X = np.random.default_rng(0).integers(0, 100, size=(1_500, 20))

    def peak_of_converting(times):
        source, rows = tmp_path / f"a.{kind}", np.tile(X, (times, 1))
        if kind == "npy":
            np.save(source, rows.astype("f8"))
        elif kind == "csv":
            source.write_text("".join(",".join(map(str, row)) + "\n" for row in rows.tolist()))
        else:
            text = (" ".join(f"{j}:{v}" for j, v in enumerate(row, start=1)) for row in rows.tolist())
            source.write_text("".join(f"1 {line}\n" for line in text))
        tracemalloc.start()
        convert(source, tmp_path / "a.zarr", overwrite=True, layout="csr" if kind == "libsvm" else "auto")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert open_samples(tmp_path / "a.zarr").n_samples == len(rows)
        return peak

    peak_of_converting(1)  # load what is loaded once
    small = min(peak_of_converting(2) for _ in range(3))
    # Other threads of the process are counted too, and only ever add: one quiet try is enough.
    assert any(peak_of_converting(8) < 1.5 * small for _ in range(10))


@pytest.mark.parametrize("line", ["1 1:1_000", "1_0 1:1", "1 1_0:1", "1 1:٣"])
def test_digits_that_python_alone_reads_are_no_numbers_of_libsvm_text(tmp_path, line):
    source = tmp_path / "a.libsvm"
    source.write_text(f"0 1:2 # a_note\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"a\.libsvm, line 2 is no LIBSVM text "):
        convert(source, tmp_path / "out.zarr", progress=False)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.libsvm"]


@pytest.mark.parametrize("dtype", [">f2", "<f2", ">f4", "?", "g"])
def test_arrays_of_any_type_are_written_as_csr(tmp_path, dtype):
    rows = np.eye(4, 3).astype(dtype)
    np.save(tmp_path / "rows.npy", rows)
    convert(tmp_path / "rows.npy", tmp_path / "out.zarr", layout="csr", progress=False)
    block = open_samples(tmp_path / "out.zarr").block(0, 4)
    assert scipy.sparse.csr_array(block[:3], shape=(4, 3)).toarray().tolist() == rows.astype(float).tolist()
