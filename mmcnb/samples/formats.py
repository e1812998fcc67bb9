"""Detect the format of a file (from its first bytes or its name) or of a folder."""

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from mmcnb.errors import InputError
from mmcnb.samples.files import check_file
from mmcnb.samples.paths import is_store_folder
from mmcnb.samples.text import compression, looks_like_libsvm, open_text, plain_name

HEAD_BYTES = 4096
MODEL_FILES = {"header.npy", "coef.npy"}  # a model is a zip archive with these files
BOM = b"\xef\xbb\xbf"
JSON = re.compile(rb'(\xef\xbb\xbf)?\s*[\[{]\s*(["\[{\]}]|[-\d])')

ENDINGS = {
    "parquet": (".parquet", ".parq", ".pq"),
    "csv": (".csv", ".tsv"),
    "arrow": (".arrow", ".feather", ".ipc"),
    "excel": (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods"),
    "json lines": (".jsonl", ".ndjson"),
    "orc": (".orc",),
    "stata": (".dta",),
    "sas": (".sas7bdat", ".xpt"),
    "arff": (".arff",),
    "json": (".json",),
    "text": (".txt", ".dat", ".data", ".tab"),
    "libsvm": (".libsvm", ".svm", ".svmlight"),
    "matrix": (".mtx",),
    "hdf5": (".h5", ".hdf5", ".h5ad", ".h5mu", ".loom"),
    "npy": (".npy",),
    "npz": (".npz",),
    "spss": (".sav", ".zsav", ".por"),
    "r": (".rds", ".rda", ".rdata"),
    "pickle": (".pkl", ".pickle", ".joblib"),
    "html": (".html", ".htm"),
    "xml": (".xml",),
    "sqlite": (".sqlite", ".sqlite3", ".db"),
    "duckdb": (".duckdb",),
    "matlab": (".mat",),
    "avro": (".avro",),
    "pdf": (".pdf",),
    "document": (".docx", ".doc", ".odt", ".rtf"),
    "numbers": (".numbers",),
}
"""File name extensions of each format."""

OF_TABLES = (
    "parquet",
    "csv",
    "arrow",
    "excel",
    "json lines",
    "orc",
    "stata",
    "sas",
    "arff",
    "json",
)
"""Formats whose files are tables."""

# In a folder, JSON and text files often accompany the tables, as metadata or notes.
WEAK = ("json", "text")
OF_TEXT = ("csv", "text", "json", "json lines", "arff", "libsvm", "matrix", "html")
"""Text formats, whose files may be compressed."""

SIGNATURES = (
    (b"PAR1", 0, "parquet"),
    (b"ARROW1", 0, "arrow"),
    (b"\x89HDF\r\n\x1a\n", 0, "hdf5"),
    (b"\x89HDF\r\n\x1a\n", 512, "hdf5"),  # MATLAB 7.3
    (b"\x93NUMPY", 0, "npy"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", 0, "excel"),
    (b"SQLite format 3\0", 0, "sqlite"),
    (b"DUCK", 8, "duckdb"),
    (b"ORC", 0, "orc"),
    (b"%%MatrixMarket", 0, "matrix"),
    (b"<stata_dta>", 0, "stata"),
    (b"$FL2", 0, "spss"),
    (b"$FL3", 0, "spss"),
    (b"RDX", 0, "r"),
    (b"X\n\0\0\0", 0, "r"),
    (b"\xc2\xea\x81\x60\xb3\x14\x11\xcf", 12, "sas"),
    (b"HEADER RECORD*******LIB", 0, "sas"),
    (b"MATLAB 5.0 MAT-file", 0, "matlab"),
    (b"Obj\x01", 0, "avro"),
    (b"%PDF-", 0, "pdf"),
    (b"{\\rtf", 0, "document"),
    (b"7z\xbc\xaf\x27\x1c", 0, "archive"),
    (b"Rar!\x1a\x07", 0, "archive"),
    (b"ustar", 257, "archive"),
)
"""Bytes that identify a format, their position in the file, and the format."""

MARKUP = (
    (re.compile(rb"\s*<(!doctype html|html|head|table|meta)\b", re.IGNORECASE), "html"),
    (re.compile(rb"\s*<\?xml\b"), "xml"),
)


class Foreign(NamedTuple):
    """A format that mmcnb does not read.

    The fields are a phrase for a file in this format and a remedy, for messages.
    """

    name: str
    remedy: str


FOREIGN = {
    "sqlite": Foreign(
        "an SQLite database",
        "give the frame pandas.read_sql_query('SELECT * FROM table', "
        "sqlite3.connect(path)), or write the table as CSV",
    ),
    "duckdb": Foreign(
        "a DuckDB database",
        "give the relation duckdb.connect(path).table('name'), or write the table as "
        "Parquet",
    ),
    "html": Foreign(
        "an HTML page",
        "save the table as CSV, or give the frame pandas.read_html(path)[0]",
    ),
    "xml": Foreign(
        "an XML document",
        "save the table as .xlsx or CSV in the program that opens it, or give the "
        "frame pandas.read_xml(path)",
    ),
    "spss": Foreign(
        "an SPSS file",
        "give the frame pandas.read_spss(path), which needs pyreadstat, or save it as "
        "CSV",
    ),
    "r": Foreign(
        "an R file",
        "write it as Parquet with arrow::write_parquet, or as CSV with write.csv",
    ),
    "pickle": Foreign(
        "a pickle, which can run any code when it is loaded",
        "if you trust it, give the frame or array pandas.read_pickle(path)",
    ),
    "matlab": Foreign(
        "a MATLAB file", "give an array of scipy.io.loadmat(path), by its name"
    ),
    "avro": Foreign("an Avro file", "give the frame polars.read_avro(path)"),
    "pdf": Foreign("a PDF document", "write its table as CSV"),
    "document": Foreign("a text document", "save its table as .xlsx or CSV"),
    "numbers": Foreign("a Numbers document", "export it as .xlsx or CSV"),
    "model": Foreign(
        "a model that mmcnb saved, not rows",
        "give a table or a store of rows; mmcnb info, predict, update, explain and "
        "report take a model, as does mmcnb.load",
    ),
    "archive": Foreign("an archive", "unpack it, and give one of its files"),
    "truncated": Foreign(
        "a damaged or truncated zip file, such as a workbook or a model",
        "get or write the file again",
    ),
}
"""Formats that are recognised but not read."""


def file_format(path: Path) -> str | None:
    """Return the format of a file; None if it is unknown or the file does not exist.

    The first bytes decide, because files are often renamed. If they do not identify a
    format, the name decides.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    str or None
        A key of `ENDINGS` or `FOREIGN`, "zarr" for a zipped store, or "packed" for a
        compressed file of a format that is not text.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from mmcnb.samples.formats import file_format
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "rows.csv")
    ...     _ = path.write_bytes(b"PAR1 and more")
    ...     file_format(path)
    'parquet'
    """
    if not path.is_file():
        return None
    named = _format_of_name(plain_name(path))
    try:
        with open_text(path) as (_, text):
            head = text.read(HEAD_BYTES)
    except InputError:  # the reader of the format reports what is wrong
        return named
    form = _format_of_bytes(path, head) or _format_of_text(path, head, named)
    if form not in (None, "r", *OF_TEXT) and compression(path):
        return "packed"
    return form


def is_name_of_rows(path: Path) -> bool:
    """Return whether the name of a path has the ending of a table or a store of rows.

    Examples
    --------
    >>> import pathlib
    >>> from mmcnb.samples.formats import is_name_of_rows
    >>> [is_name_of_rows(pathlib.Path(f"a.{ending}")) for ending in ("csv.gz", "pdf")]
    [True, False]
    """
    name = plain_name(path)
    form = _format_of_name(name)
    return name.endswith(".zarr") or (form is not None and form not in FOREIGN)


def _format_of_name(name: str) -> str | None:
    for form, endings in ENDINGS.items():
        if name.endswith(endings):
            return form
    return None


def _format_of_bytes(path: Path, head: bytes) -> str | None:
    """Return the format that the first bytes of a file identify, or None."""
    for first_bytes, start, form in SIGNATURES:
        if head[start:].startswith(first_bytes):
            return form
    if head.startswith(b"PK\x03\x04"):
        return _format_of_zip(path)
    for pattern, form in MARKUP:
        if pattern.match(head.removeprefix(BOM)):
            return form
    return None


def _format_of_zip(path: Path) -> str:
    """Return the format of a file that is a zip archive."""
    if not zipfile.is_zipfile(path):
        return "truncated"
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    if any(name.startswith("xl/") for name in names):
        return "excel"
    if "content.xml" in names:
        return "excel" if path.suffix.lower() != ".odt" else "document"
    if any(name.startswith("word/") for name in names):
        return "document"
    if any(name.startswith("Index/") for name in names):
        return "numbers"
    if set(names) >= MODEL_FILES:
        return "model"
    files = [name for name in names if not name.endswith("/")]
    if files and all(name.endswith(".npy") for name in files):
        return "npz"
    marks = ("zarr.json", ".zgroup", ".zarray")
    if any(name.rpartition("/")[2] in marks for name in names):
        return "zarr"
    return "archive"


def _format_of_text(path: Path, head: bytes, named: str | None) -> str | None:
    """Return the format of a file whose first bytes do not identify a format."""
    is_text = b"\0" not in head or head[:2] in (b"\xff\xfe", b"\xfe\xff")
    if named == "csv":
        return "csv"
    if named == "excel" and is_text:  # many programs write CSV text as .xls
        return "csv"
    if named in ("json", "json lines", "text") and JSON.match(head):
        return _format_of_json(head, named)
    if named == "text":
        return "libsvm" if looks_like_libsvm(path) else "csv"
    return named


def _format_of_json(head: bytes, named: str) -> str:
    """Return "json lines" if each of the first lines is an object, otherwise "json"."""
    lines = [line.strip() for line in head.removeprefix(BOM).splitlines()]
    lines = [line for line in lines if line]
    is_object = lines[0].startswith(b"{") and lines[0].endswith(b"}")
    has_more = len(lines) > 1 and lines[1].startswith(b"{")
    is_named = named == "json lines" and lines[0].startswith(b"{")
    return "json lines" if is_named or (is_object and has_more) else "json"


def table_format(path: Path) -> str | None:
    """Return the format of a table (a file or a folder); None if it is not a table.

    Raises
    ------
    InputError
        If the folder contains tables of several formats.
    """
    form = file_format(path)
    if path.is_dir() and not is_store_folder(path):
        form = folder_format(path)
    return form if form in OF_TABLES else None


def table_files(path: Path) -> list[Path]:
    """Return a list of the file, or of the table files in a folder and its subfolders.

    Files and subfolders whose names begin with . or _ are ignored.
    """
    if path.is_file():
        return [path]
    form = table_format(path)
    files = [file for file, other in _files_below(path) if other == form]
    for file in files:
        check_file(file)
    return sorted(files)


def _files_below(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield each file below a folder, with the format that its name indicates.

    Files of `WEAK` formats are yielded only if there are no other tables.
    """
    files: list[tuple[Path, str]] = []
    for file in folder.rglob("*"):
        parts = file.relative_to(folder).parts
        is_hidden = any(part.startswith((".", "_")) for part in parts)
        form = _format_of_name(plain_name(file))
        if form is not None and not is_hidden and not file.is_dir():
            files.append((file, form))
    has_tables = any(form in OF_TABLES and form not in WEAK for _, form in files)
    for file, form in files:
        if form not in WEAK:
            yield file, form
        elif not has_tables:
            yield file, "csv" if form == "text" else form


def folder_format(folder: Path) -> str | None:
    """Return the format of the tables or the matrix in a folder.

    The result is None if the folder has neither.

    A Matrix Market file takes precedence over tables beside it, which name its rows and
    columns.

    Raises
    ------
    InputError
        If the folder contains tables of several formats.
    """
    first: dict[str, Path] = {}
    for file, form in _files_below(folder):
        if form in OF_TABLES or form == "matrix":
            first[form] = min(file, first.get(form, file))
    if "matrix" in first:
        return "matrix"
    if len(first) > 1:
        names = [str(file.relative_to(folder)) for file in first.values()]
        raise InputError(
            f"{folder} has tables of several formats, such as {' and '.join(names)}: "
            "pass one of the files, or a folder with files of one format."
        )
    return next(iter(first), None)


def is_unknown(path: Path) -> bool:
    """Return whether a file has an unknown format, or a format that cannot be read."""
    form = file_format(path)
    if form is None:
        return not looks_like_libsvm(path)
    return form == "packed" or form in FOREIGN


def refusal(path: Path) -> InputError:
    """Return the error for a file in a format that cannot be read.

    The message names the format and a remedy.
    """
    form = file_format(path)
    if form == "packed":
        ending = compression(path)
        return InputError(
            f"{path} is compressed ({ending}), but only text files may be compressed: "
            "unpack it."
        )
    if form in FOREIGN:
        foreign = FOREIGN[form]
        return InputError(f"{path} is {foreign.name}: {foreign.remedy}.")
    return InputError(
        f"{path} has an unknown format: name it .csv, .tsv, .jsonl or .libsvm (plain, "
        ".gz, .bz2, .xz, .zst), .parquet, .arrow, .feather, .xlsx, .mtx, .npy or .npz, "
        "or give a Zarr store."
    )
