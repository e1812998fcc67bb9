"""Each remedy that a command names is followed, and then the command succeeds."""

import io
import shlex
import shutil
import warnings
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mmcnb.cli import main
from tests.remedies.following import (
    by_hand,
    choices,
    commands,
    given_value,
    instead_of,
    least_memory,
    leave_out,
    meant,
    only,
    options,
    reason,
    refit,
)
from tests.remedies.tables import PLAIN, beside, lines, numbers


class Situation(NamedTuple):
    """A command on ``rows.csv``, its message, and how the message is followed."""

    command: str
    message: str
    follow: Any = options
    rows: str | bytes = PLAIN
    n_attempts: int = 1
    mended: str | None = None  # the rows after what is done by hand
    files: dict[str, bytes] | None = None  # beside rows.csv


CONVERT = "convert rows.csv rows.zarr --overwrite"
PARQUET = "convert rows.parquet rows.zarr --overwrite"
PREDICT = "predict customers.model {} --labels l.csv --overwrite"


def day(k):
    """A date whose day and month cannot be told apart."""
    return f"{1 + k % 12}/{1 + k % 11}/2025"


def long_text(k):
    """Words that no other row has."""
    return f"words of row {k} and others that make it long {k * k}"


def zipped(name, text):
    """A zip file that contains one file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, text)
    return buffer.getvalue()


def edited(old, new, text=PLAIN):
    """A text with one change."""
    assert old in text
    return text.replace(old, new, 1)


LATIN = beside(lambda k: f"Zoë{k % 3}").encode("cp1252")
MATRIX = b"%%MatrixMarket matrix coordinate integer general\n3 2 2\n1 1 4\n3 2 5\n"
SITUATIONS = {
    # Matrices
    "a matrix without features": Situation(
        "convert counts rows.zarr --overwrite",
        "counts has matrix.mtx, but no features.tsv (or genes.tsv)",
        by_hand("give counts/matrix.mtx", "counts", "counts/matrix.mtx"),
        files={"counts/matrix.mtx": MATRIX, "counts/barcodes.tsv": b"C1\nC2\n"},
    ),
    "features of several types": Situation(
        "convert counts rows.zarr --overwrite",
        "'Antibody Capture' (1) are left out",
        files={
            "counts/matrix.mtx": MATRIX,
            "counts/barcodes.tsv": b"C1\nC2\n",
            "counts/features.tsv": b"E1\tG1\tGene Expression\n"
            b"E2\tG2\tGene Expression\nE3\tCD3\tAntibody Capture\n",
        },
    ),
    "a matrix below a folder": Situation(
        "convert study rows.zarr --overwrite",
        "has a matrix in a folder below it",
        by_hand("give study/counts instead", "study", "study/counts"),
        files={
            "study/counts/matrix.mtx": MATRIX,
            "study/counts/barcodes.tsv": b"C1\nC2\n",
            "study/counts/genes.tsv": b"E1\tG1\nE2\tG2\nE3\tG3\n",
        },
    ),
    # Texts in an order
    "answers": Situation(
        CONVERT,
        "order: 'what' (never < often < always); text=['what']",
        rows=beside(lambda k: ("often", "never", "always")[k % 3]),
    ),
    "texts outside of an order": Situation(
        f"{CONVERT} --order what=lo,mid",
        "such as 'top', are not in the given order: add their texts to the order",
        rows=beside(lambda k: ("lo", "mid", "top")[k % 3]),
        n_attempts=3,
    ),
    "an order without texts": Situation(
        f"{CONVERT} --order what",
        "needs two or more different texts: pass",
        instead_of("--order"),
        rows=beside(lambda k: ("L", "S", "M")[k % 3], header="age,size"),
    ),
    # Lines of CSV files
    "a longer header": Situation(
        CONVERT,
        "this header has 3 names, but rows below it have 2 cells",
        rows=edited("age,pay", "age,pay,more"),
    ),
    "a longer header, corrected": Situation(
        CONVERT,
        "correct it, or pass",
        by_hand("correct it"),
        rows=edited("age,pay", "age,pay,more"),
        mended=PLAIN,
    ),
    "a shorter header": Situation(
        CONVERT,
        "this header has 2 names, but rows below it have 3 cells",
        rows=lines("age,pay", lambda k: f"{numbers(k)},{k % 3}"),
    ),
    "one name above decimals": Situation(
        CONVERT,
        "this header has one name, but rows below it have two cells",
        rows=lines("age", numbers),
        n_attempts=2,
    ),
    "a longer row": Situation(
        CONVERT,
        "line 7: 3 cells, but the table has 2 columns: correct or remove the line",
        by_hand("correct or remove the line"),
        rows=edited("\n5,3\n", "\n5,3,9\n"),
        mended=PLAIN,
    ),
    "a header alone": Situation(
        CONVERT,
        "has a header and no rows",
        by_hand("add at least one"),
        rows="age,pay\n",
        mended=PLAIN,
    ),
    "an empty file": Situation(
        CONVERT, "has no rows", by_hand("add at least one"), rows="", mended=PLAIN
    ),
    "too many lines skipped": Situation(
        f"{CONVERT} --skip-lines 100", "has only 41 lines", instead_of("--skip-lines")
    ),
    "no such line of names": Situation(
        f"{CONVERT} --header maybe",
        "header='maybe' is unknown",
        choices,
        rows=lines("8,9", numbers),
        n_attempts=2,
    ),
    # Encodings and marks of CSV files
    "not UTF-8": Situation(
        f"{CONVERT} --encoding utf-8",
        "this is not UTF-8 text",
        instead_of("--encoding"),
        rows=LATIN,
    ),
    "not ASCII": Situation(
        f"{CONVERT} --encoding ascii",
        "this is not ascii text",
        instead_of("--encoding"),
        rows=LATIN,
    ),
    "an unknown encoding": Situation(
        f"{CONVERT} --encoding foo",
        "encoding='foo' is unknown",
        by_hand("such as 'utf-8'", "foo", "utf-8"),
    ),
    "one comma for two marks": Situation(
        f"{CONVERT} --decimal , --delimiter ,",
        "cannot be both the delimiter and the decimal mark",
        instead_of("--delimiter"),
        rows=lines("age;pay", lambda k: f"{k % 7};{k % 5},5"),
    ),
    "a mark between thousands": Situation(
        f"{CONVERT} --thousands ;",
        "thousands=';' cannot separate thousands",
        by_hand('pass another separator, such as "\'"', ";", "'"),
    ),
    "two marks between cells": Situation(
        f"{CONVERT} --delimiter ;;",
        "delimiter=';;' is not a single character",
        by_hand("pass one", ";;", ";"),
        rows=lines("age;pay", lambda k: f"{k % 7};{k % 5}"),
    ),
    "an unknown decimal point": Situation(
        f"{CONVERT} --decimal ;",
        "invalid choice: ';'",
        by_hand("','", ";", ","),
        rows=lines("age;pay", lambda k: f"{k % 7};{k % 5},5"),
    ),
    "fewer than no lines": Situation(
        f"{CONVERT} --skip-lines -1",
        "skip_lines=-1 is not a number of lines",
        given_value,
    ),
    # Cells
    "missing cells": Situation(
        f"{CONVERT} --missing refuse",
        "line 5, column 0 ('age'): the cell has no value",
        rows=edited("\n3,9\n", "\n,9\n"),
        n_attempts=2,
    ),
    "missing cells in all rows": Situation(
        f"{CONVERT} --missing drop",
        "all 40 rows have a missing cell",
        rows=beside(lambda k: f"{k % 7},", header="age,pay,empty"),
    ),
    "an infinite cell": Situation(
        CONVERT,
        "line 5, column 1 ('what'): the cell is infinite",
        rows=beside(lambda k: "inf" if k == 3 else k * k),
    ),
    "large numbers": Situation(
        f"{CONVERT} --dtype float32",
        "1e+300 is too large for float32",
        by_hand("--dtype float64", "float32", "float64"),
        rows=beside(lambda k: f"{k}e300"),
    ),
    "texts refused": Situation(
        f"{CONVERT} --categories refuse",
        "column 1 ('what'): 'a' is not a number",
        rows=beside(lambda k: "ab"[k % 2]),
        n_attempts=2,
    ),
    "dates refused": Situation(
        f"{CONVERT} --dates refuse",
        "is a date or time, not a number",
        rows=beside(lambda k: f"2025-01-{1 + k % 28:02}"),
        n_attempts=2,
    ),
    "days or months": Situation(
        f"{CONVERT} --columns all",
        "'1/1/2025' may begin with the day or the month",
        rows=beside(day),
        n_attempts=2,
    ),
    "days or months left out": Situation(
        CONVERT,
        "specifies which field these dates begin with",
        rows=beside(day),
        n_attempts=2,
    ),
    "dates": Situation(
        CONVERT,
        "'what' (its dates show when rows were recorded)",
        rows=lines(
            "age,pay,what", lambda k: f"{numbers(k)},2025-01-{1 + k * k % 28:02}"
        ),
        n_attempts=2,
    ),
    "dates that stay": Situation(
        CONVERT,
        "'what' (its dates show when rows were recorded) is kept",
        rows=beside(lambda k: f"2025-01-{1 + k * k % 28:02}"),
    ),
    "days or months beside others": Situation(
        CONVERT,
        "specifies which field these dates begin with",
        rows=lines("age,pay,what", lambda k: f"{numbers(k)},{day(k)}"),
        n_attempts=2,
    ),
    "days or months kept": Situation(
        f"{CONVERT} --keep what",
        "'1/1/2025' may begin with the day or the month",
        rows=lines("age,pay,what", lambda k: f"{numbers(k)},{day(k)}"),
        n_attempts=2,
    ),
    "an identifier": Situation(
        CONVERT,
        "'code' (it is an identifier by its name and values)",
        rows=lines("age,pay,code", lambda k: f"{numbers(k)},{7 * k * k % 997}"),
    ),
    "documents": Situation(
        f"{CONVERT} --columns all",
        "its texts are documents",
        rows=beside(long_text),
    ),
    "an empty column": Situation(
        f"{CONVERT} --columns all",
        "no cell has a value",
        rows=beside(lambda k: ""),
    ),
    "codes": Situation(
        CONVERT,
        "its numbers begin with 0, as codes do); keep=['what']",
        rows=beside(lambda k: f"{k:05}"),
    ),
    "names of rows": Situation(
        CONVERT, "40 texts in 40 rows); keep=['what']", rows=beside(lambda k: f"n{k}")
    ),
    "numbers of rows": Situation(
        CONVERT, "it numbers the rows); keep=['what']", rows=beside(str)
    ),
    "names of rows alone": Situation(
        CONVERT,
        "no column is left as a feature: keep=['name']",
        rows=lines("name", lambda k: f"n{k}"),
    ),
    "units": Situation(
        CONVERT,
        "numbers were read without their units: 'what' (kg)",
        rows=beside(lambda k: f"{k * k % 7} kg"),
    ),
    "one comma in each number": Situation(
        CONVERT,
        "numbers such as 1,234 were read with",
        rows=lines("age;what", lambda k: f"{k % 5};1,{100 + k * k % 800}"),
    ),
    "texts that mark gaps": Situation(
        CONVERT,
        "'none' is a category of 'what'",
        rows=beside(lambda k: ("none", "red", "blue")[k % 3]),
    ),
    "an own mark of gaps": Situation(
        CONVERT,
        "6 of its 40 cells are not numbers ('n.v.')",
        only("--na-values"),
        rows=beside(lambda k: 3 * k if k % 7 else "n.v."),
    ),
    # Columns
    "a misspelt column": Situation(
        f"{CONVERT} --columns agee", "no column is named 'agee'", meant
    ),
    "a misspelt column to drop": Situation(
        f"{CONVERT} --drop agee", "perhaps 'age' is meant (--drop)", meant
    ),
    "a misspelt column to keep": Situation(
        f"{CONVERT} --keep agee", "perhaps 'age' is meant (--keep)", meant
    ),
    "a misspelt column of texts": Situation(
        f"{CONVERT} --text agee", "perhaps 'age' is meant (--text)", meant
    ),
    "misspelt classes": Situation(
        f"{CONVERT} --label-column pya", "perhaps 'pay' is meant", meant
    ),
    "misspelt names of rows": Situation(
        f"{CONVERT} --index-column agee", "perhaps 'age' is meant", meant
    ),
    "another column": Situation(
        f"{CONVERT} --columns weight",
        "no column is named 'weight' among 'age', 'pay'",
        by_hand("name one of these, or pass an index, counted from 0", "weight", "0"),
    ),
    "a number of no column": Situation(
        f"{CONVERT} --columns 5",
        "there is no column 5 among the 2 columns",
        by_hand("count from 0, or backwards from -1", "5", "1"),
    ),
    "a name without a header": Situation(
        f"{CONVERT} --header no --columns age",
        "has no header, so no column is named 'age'",
        by_hand("pass its index, counted from 0", "age", "0"),
        rows=PLAIN.partition("\n")[2],
    ),
    "a column used and dropped": Situation(
        f"{CONVERT} --columns age --drop age",
        "column 0 ('age') is both used and dropped",
        leave_out,
    ),
    "all columns dropped": Situation(
        f"{CONVERT} --drop age,pay",
        "no column is left as a feature",
        by_hand("leave out fewer", "age,pay", "age"),
    ),
    "classes that name the rows": Situation(
        f"{CONVERT} --label-column age --index-column age",
        "cannot be both classes and row names",
        leave_out,
        n_attempts=2,
    ),
    "two columns of classes": Situation(
        f"{CONVERT} --label-column age,pay",
        "2 columns are given for --label-column",
        instead_of("--label-column"),
    ),
    "two columns of names": Situation(
        f"{CONVERT} --index-column age,pay",
        "2 columns are given for --index-column",
        instead_of("--index-column"),
    ),
    "half a class": Situation(
        f"{CONVERT} --label-column what",
        "label '0.5' is not an integer, unlike the labels before it",
        by_hand("correct it"),
        rows=beside(lambda k: 0.5 if k == 30 else k % 2),
        mended=beside(lambda k: k % 2),
    ),
    "a missing class": Situation(
        f"{CONVERT} --label-column what",
        "the class label is missing",
        rows=beside(lambda k: "" if k == 30 else k % 2),
    ),
    # Words of options
    "an unknown treatment of gaps": Situation(
        f"{CONVERT} --missing zero", "invalid choice: 'zero'", choices, n_attempts=5
    ),
    "an unknown treatment of dates": Situation(
        f"{CONVERT} --dates iso", "invalid choice: 'iso'", choices, n_attempts=6
    ),
    "an unknown treatment of texts": Situation(
        f"{CONVERT} --categories x", "invalid choice: 'x'", choices, n_attempts=3
    ),
    "an unknown type": Situation(
        f"{CONVERT} --dtype int8", "invalid choice: 'int8'", choices, n_attempts=2
    ),
    "an unknown layout": Situation(
        f"{CONVERT} --layout wide", "invalid choice: 'wide'", choices, n_attempts=3
    ),
    "an unknown option": Situation(
        f"{CONVERT} --colums age",
        "unrecognized arguments: --colums age",
        by_hand("--columns", "--colums", "--columns"),
    ),
    # Options of other formats
    "a header of Parquet": Situation(
        f"{PARQUET} --header no", "header applies to CSV files only", leave_out
    ),
    "lines of Parquet": Situation(
        f"{PARQUET} --skip-lines 1", "skip_lines applies to CSV files only", leave_out
    ),
    "an encoding of Parquet": Situation(
        f"{PARQUET} --encoding cp1252", "encoding applies to CSV files only", leave_out
    ),
    "a delimiter of Parquet": Situation(
        f"{PARQUET} --delimiter ;", "delimiter applies to CSV files only", leave_out
    ),
    "columns of a store": Situation(
        "convert blobs.zarr rows.zarr --columns 0", "columns applies to CSV", leave_out
    ),
    "an element of a table": Situation(
        "plan rows.csv --element Y", "has no element 'Y'", leave_out
    ),
    "another element": Situation(
        "plan blobs.zarr --element Y",
        "has no element 'Y'; it has: X",
        by_hand("Name one with element (--element)", "Y", "X"),
    ),
    # Files and outputs
    "no such file": Situation(
        "convert none.csv rows.zarr",
        "none.csv does not exist",
        by_hand("check the path", "none.csv", "rows.csv"),
    ),
    "no such store": Situation(
        "info none.zarr",
        "none.zarr does not exist",
        by_hand("check the path", "none.zarr", "blobs.zarr"),
    ),
    "no such folder of outputs": Situation(
        "doctor none",
        "none is not a folder",
        by_hand("give the folder of your outputs", "none", "."),
    ),
    "a store that is there": Situation(
        "convert rows.csv blobs.zarr", "blobs.zarr exists already"
    ),
    "a model that is there": Situation(
        "fit customers.csv --model blobs.model", "blobs.model exists already"
    ),
    "labels that are there": Situation(
        "predict blobs.model blobs.zarr --labels blobs-labels.csv",
        "blobs-labels.csv exists already",
    ),
    "a page that is there": Situation(
        "report customers.model customers.csv --out short.csv",
        "short.csv exists already",
    ),
    "a later model that is there": Situation(
        "update customers.model customers.csv --out blobs.model",
        "blobs.model exists already",
    ),
    "a store over its source": Situation(
        "convert rows.csv ./rows.csv --overwrite",
        "overlaps its source rows.csv: choose another path",
        by_hand("choose another path", "./rows.csv", "rows.zarr"),
    ),
    "labels over rows": Situation(
        "predict blobs.model blobs.zarr --labels ./blobs.zarr --overwrite",
        "would replace the input blobs.zarr",
        by_hand("choose another path for it", "./blobs.zarr", "l.csv"),
    ),
    "an output in no folder": Situation(
        "convert rows.csv none/rows.zarr",
        "none does not exist: create it first",
        by_hand("create it first", "none/rows.zarr", "rows.zarr"),
    ),
    "labels of another format": Situation(
        "predict blobs.model blobs.zarr --labels l.txt",
        "labels are not written as '.txt'",
        by_hand("give a path that ends with .csv", "l.txt", "l.csv"),
    ),
    "a table of another format": Situation(
        "predict customers.model customers.csv --table t.txt",
        "a table is not written as '.txt'",
        by_hand("give a path that ends with .csv", "t.txt", "t.csv"),
    ),
    "a table of a store": Situation(
        "predict blobs.model blobs.zarr --table t.csv",
        "is not a table, so the clusters cannot be added",
        instead_of("--table"),
    ),
    "no output of a fit": Situation(
        "fit customers.csv --method cpmmc", "nothing would be written", n_attempts=3
    ),
    "no output of a prediction": Situation(
        "predict customers.model customers.csv",
        "nothing would be written",
        n_attempts=2,
    ),
    "two outputs to print": Situation(
        "predict customers.model customers.csv --labels=- --table=-",
        "--labels - and --table - would both be printed",
        by_hand("give a path for one of them", "--labels=-", "--labels=l.csv"),
    ),
    "a table to verify": Situation(
        "verify rows.csv", "rows.csv is a file, not a Zarr store", commands
    ),
    # Stores, and files of other formats
    "a store without checksums": Situation(
        "fit plain.zarr --model m --method cpmmc --overwrite",
        "the store has no checksums",
        commands,
    ),
    "a store to verify without checksums": Situation(
        "verify plain.zarr", "the store has no checksums", commands
    ),
    "a missing chunk": Situation(
        "fit hole.zarr --model m --method cpmmc",
        "chunk X/c/0/0 is missing",
        by_hand("restore it from a copy", "hole.zarr", "blobs.zarr"),
    ),
    "a damaged chunk": Situation(
        "verify flip.zarr",
        "chunk X/c/0/0 is missing or damaged",
        by_hand("restore it from a copy", "flip.zarr", "blobs.zarr"),
    ),
    "damaged metadata": Situation(
        "info meta.zarr",
        "the store's metadata cannot be read",
        by_hand("restore it from a copy", "meta.zarr", "blobs.zarr"),
    ),
    "a damaged model": Situation(
        "predict half.model blobs.zarr --labels l.csv",
        "half.model is not a model of mmcnb, or it is damaged",
        by_hand("fit and save the model again", "half.model", "blobs.model"),
    ),
    "columns from 0 in LIBSVM text": Situation(
        "convert rows.libsvm rows.zarr --overwrite",
        "index 0 needs --zero-based",
        files={"rows.libsvm": b"1 0:2 2:3\n0 1:3\n" * 9},
    ),
    "no number in LIBSVM text": Situation(
        "convert rows.libsvm rows.zarr --overwrite",
        "line 2 is not LIBSVM text",
        reason(
            "write an integer label, then index:value pairs with increasing indices"
        ),
        files={"rows.libsvm": b"1 1:2 2:3\n0 1:x\n"},
        n_attempts=0,
    ),
    "files of two formats": Situation(
        "convert mixed rows.zarr --overwrite",
        "mixed has tables of several formats",
        by_hand("pass one of the files", "mixed", "mixed/a.csv"),
        files={"mixed/a.csv": PLAIN.encode(), "mixed/b.parquet": b"PAR1"},
    ),
    "files that spell a column otherwise": Situation(
        "convert spelled rows.zarr --overwrite",
        "has a column 'age', and spelled/b.csv has 'Age'",
        by_hand("rename one of these columns", "spelled", "spelled/a.csv"),
        files={
            "spelled/a.csv": PLAIN.encode(),
            "spelled/b.csv": PLAIN.replace("age", "Age").encode(),
        },
    ),
    "files of other tables": Situation(
        "convert others rows.zarr --overwrite",
        "are not parts of one table",
        by_hand("pass one of the files", "others", "others/a.csv"),
        files={
            "others/a.csv": PLAIN.encode(),
            "others/b.csv": b"day,price\n1,2\n3,5\n",
        },
    ),
    "an archive": Situation(
        "convert rows.zip rows.zarr --overwrite",
        "rows.zip is an archive",
        by_hand("unpack it, and give one of its files", "rows.zip", "rows.csv"),
        files={"rows.zip": zipped("rows.csv", PLAIN)},
    ),
    "a document": Situation(
        "convert rows.pdf rows.zarr --overwrite",
        "rows.pdf is a PDF document",
        by_hand("write its table as CSV", "rows.pdf", "rows.csv"),
        files={"rows.pdf": b"%PDF-1.4"},
    ),
    "a page": Situation(
        "convert rows.html rows.zarr --overwrite",
        "rows.html is an HTML page",
        by_hand("save the table as CSV", "rows.html", "rows.csv"),
        files={"rows.html": b"<html><table>"},
    ),
    "a file of R": Situation(
        "convert rows.rds rows.zarr --overwrite",
        "rows.rds is an R file",
        by_hand("as CSV with write.csv", "rows.rds", "rows.csv"),
        files={"rows.rds": b"\x1f\x8b\x08"},
    ),
    "half a file of Parquet": Situation(
        "convert half.parquet rows.zarr --overwrite",
        "half.parquet cannot be read",
        by_hand("get or write the file again", "half.parquet", "rows.parquet"),
        files={"half.parquet": b"PAR1 PAR"},
    ),
    "half an archive of NumPy": Situation(
        "convert half.npz rows.zarr --overwrite",
        "half.npz cannot be read",
        by_hand("save it again with numpy", "half.npz", "rows.parquet"),
        files={"half.npz": b"PK"},
    ),
    "an output at an address": Situation(
        "convert rows.csv s3://bucket/rows.zarr",
        "outputs can only be written to disks of this machine",
        by_hand("write rows.zarr and copy it", "s3://bucket/rows.zarr", "rows.zarr"),
    ),
    "an address that does not answer": Situation(
        "info http://127.0.0.1:1/rows.zarr",
        "could not be fetched",
        reason("check the address and the connection, or try again later"),
        n_attempts=0,
    ),
    "a number that marks gaps": Situation(
        "fit rows.csv --model m --method cpmmc --overwrite",
        "'what' has the value -777 in 5 of 40 rows",
        rows=beside(lambda k: -777 if k % 9 == 2 else k * k % 37),
    ),
    "a known mark of gaps": Situation(
        CONVERT,
        "count as missing: -999 in 5 rows of 'what'",
        rows=beside(lambda k: -999 if k % 9 == 2 else k * k % 37),
    ),
    "marks of a number of a column": Situation(
        f"{CONVERT} --na-values 1=7",
        "no column is named '1'",
        by_hand("perhaps 'pay' is meant", "1=7", "pay=7"),
    ),
    "a mark with a comma": Situation(
        CONVERT,
        "6 of its 40 cells are not numbers ('n.v., later')",
        only("--na-values"),
        rows=beside(lambda k: 3 * k if k % 7 else '"n.v., later"'),
    ),
    # Models and the rows they are given
    "no model to predict with": Situation(
        "predict none.model customers.csv --labels l.csv",
        "there is no model at none.model",
        commands,
    ),
    "no model to explain": Situation(
        "explain none.model customers.csv", "there is no model at none.model", commands
    ),
    "no model": Situation(
        "predict rows.csv blobs.zarr --labels l.csv",
        "rows.csv is not a model of mmcnb",
        by_hand("fit and save the model again", "rows.csv", "blobs.model"),
    ),
    "a model that takes no rows": Situation(
        "update hyperplane.model blobs.zarr", "which cannot be updated", refit
    ),
    "a missing column": Situation(
        PREDICT.format("other.csv"),
        "other.csv has no column 'spent', which the model needs",
        by_hand("add it, or rename the column", "other.csv", "customers.csv"),
    ),
    "a column of another name": Situation(
        PREDICT.format("near.csv"),
        "rename 'plans' to 'plan' if this is meant",
        by_hand("which the model needs", "near.csv", "customers.csv"),
    ),
    "numbers that are texts": Situation(
        PREDICT.format("rows.csv"),
        "'x0' is not a number: correct it",
        by_hand("correct it"),
        rows=lines("age,spent,plan", lambda k: f"x{k},{k},basic"),
        mended=lines("age,spent,plan", lambda k: f"{k},{k},basic"),
    ),
    "a store for a table": Situation(
        PREDICT.format("blobs.zarr"),
        "is not a table with the columns of the fit",
        by_hand("the path of a table", "blobs.zarr", "customers.csv"),
    ),
    "more columns": Situation(
        "predict blobs.model wide.zarr --labels l.csv",
        "wide.zarr has 4 features",
        by_hand("rows with the columns of the fit", "wide.zarr", "blobs.zarr"),
    ),
    # Labels that are given
    "too few labels": Situation(
        "score blobs.zarr short.csv",
        "short.csv has 5 values and",
        by_hand("give one label for each row", "short.csv", "blobs-labels.csv"),
    ),
    "labels to explain": Situation(
        "explain customers.model customers.csv --labels short.csv",
        "short.csv has 5 values and customers.csv has 60 rows",
        by_hand("give one label for each row", "short.csv", "customers-labels.csv"),
    ),
    "labels of other rows": Situation(
        "score blobs.zarr customers-labels.csv",
        "customers-labels.csv has other rows than",
        by_hand(
            "give the labels of these rows", "customers-labels.csv", "blobs-labels.csv"
        ),
    ),
    "labels that are not whole": Situation(
        "score blobs.zarr halves.csv",
        "halves.csv has numbers such as 0.5",
        by_hand("give whole numbers or names", "halves.csv", "blobs-labels.csv"),
    ),
    "a missing column of labels": Situation(
        "score blobs.zarr blobs-labels.csv --label-column kind",
        "has no column 'kind' of labels",
        by_hand("name one of row, cluster", "kind", "cluster"),
    ),
    "no labels": Situation(
        "score blobs.zarr none.csv",
        "none.csv does not exist",
        by_hand("check the path", "none.csv", "blobs-labels.csv"),
    ),
    # Parameters of methods
    "an unknown verb": Situation(
        "fry blobs.zarr", "invalid choice: 'fry'", by_hand("'info'", "fry", "info")
    ),
    "an unknown method": Situation(
        "plan blobs.zarr --method svm", "invalid choice: 'svm'", choices, n_attempts=9
    ),
    "an unknown kernel": Situation(
        "plan blobs.zarr --kernel cubic",
        "kernel='cubic' is unknown",
        choices,
        n_attempts=4,
    ),
    "an unknown scale": Situation(
        "plan blobs.zarr --set scale=log",
        "scale='log' is unknown",
        choices,
        n_attempts=3,
    ),
    "a range upside down": Situation(
        "plan blobs.zarr --n-clusters 5,3",
        "has its limits in the wrong order",
        given_value,
    ),
    "a parameter out of range": Situation(
        "plan blobs.zarr --method cpmmc --set C=-1",
        "C=-1 is out of range",
        by_hand("give a number above 1", "C=-1", "C=2"),
    ),
    "more clusters than rows": Situation(
        "fit rows.csv --model m --n-clusters 41",
        "n_clusters=41 is more than the 40 rows",
        by_hand("pass n_clusters=40 or fewer", "41", "40"),
        rows=beside(lambda k: k * k),
    ),
    "no thread": Situation(
        "plan blobs.zarr --jobs 0",
        "n_jobs=0 means no threads",
        by_hand("-1 for all cores", "0", "-1"),
    ),
    "a seed that is none": Situation(
        "plan blobs.zarr --random-state x",
        "random_state='x' is not a seed",
        by_hand("give a whole number from 0", "x", "0"),
    ),
    "a parameter of another method": Situation(
        "plan blobs.zarr --set gamma=1",
        "maximum-margin-clustering has no parameter gamma",
        options,
    ),
    "an option of another method": Situation(
        "plan blobs.zarr --method sparse-kernel-mmc --n-clusters 3",
        "sparse-kernel-mmc has no parameter n_clusters",
        instead_of("--method"),
    ),
    "clusters of a method for two": Situation(
        "plan blobs.zarr --method cpmmc --n-clusters 3",
        "cpmmc has no parameter n_clusters; leave it out",
        leave_out,
    ),
    "an unknown parameter": Situation(
        "plan blobs.zarr --set colour=red",
        "has no parameter colour; leave it out",
        by_hand("leave it out", "--set", "--json", "colour=red", "--json"),
    ),
    "a parameter without a value": Situation(
        "plan blobs.zarr --method unsupervised-rls --set n_init",
        "'n_init' has no value",
        by_hand("such as n_init=3", "n_init", "n_init=3"),
    ),
    "a size beside a number": Situation(
        "plan blobs.zarr --min-cluster-size 5 --n-clusters 3",
        "min_cluster_size=5 applies only if the number of clusters is chosen",
        leave_out,
        n_attempts=2,
    ),
    "neither rows nor a store": Situation(
        "plan --rows 5",
        "plan takes either DATA or both --rows and --features",
        by_hand("DATA", "--rows", "blobs.zarr", "5", "--json"),
    ),
    "no rows": Situation(
        "plan --rows 0 --features 2",
        "rows=0 is out of range",
        by_hand("at least 1", "0", "1"),
    ),
    # Memory, checkpoints and layers
    "little memory for a plan": Situation(
        "plan blobs.zarr --memory-limit 1MiB", "the least that works is", least_memory
    ),
    "little memory for a conversion": Situation(
        f"{CONVERT} --memory-limit 1MiB", "too small to convert the data", least_memory
    ),
    "memory without a unit": Situation(
        f"{CONVERT} --memory-limit lots",
        "memory_limit='lots' is not a number of bytes",
        by_hand("write it like '512MiB'", "lots", "512GiB"),
    ),
    "a checkpoint of another fit": Situation(
        "fit blobs.zarr --model m --method cpmmc --checkpoint begun",
        "checkpoint begun belongs to another fit",
        by_hand("give checkpoint another folder", "begun", "again"),
    ),
    "a checkpoint that is a file": Situation(
        "fit blobs.zarr --model m --method cpmmc --checkpoint short.csv",
        "short.csv is a file; give checkpoint a folder",
        by_hand("give checkpoint a folder", "short.csv", "again"),
    ),
    "a checkpoint in no folder": Situation(
        "fit blobs.zarr --model m --method cpmmc --checkpoint none/begun",
        "none does not exist; create it first",
        by_hand("create it first", "none/begun", "again"),
    ),
    "layers without a table": Situation(
        "fit blobs.zarr --model m --layers", "--layers needs a table of labels"
    ),
    "layers of another method": Situation(
        "fit blobs.zarr --labels l.csv --layers --method cpmmc",
        "--layers applies to maximum-margin-clustering only",
        leave_out,
    ),
    "the numbers of another method": Situation(
        "fit blobs.zarr --like blobs.model --model m --method cpmmc",
        "--like applies to maximum-margin-clustering only",
        leave_out,
    ),
    "an address of no scheduler": Situation(
        "fit blobs.zarr --model m --method cpmmc --dask nowhere",
        "engine='nowhere' is not the address",
        by_hand(
            "'local:4' for four worker processes",
            "--dask",
            "--json",
            "nowhere",
            "--json",
        ),
    ),
}


@pytest.fixture
def messages_of(capsys):
    """A function that runs a command, and gives its exit code and all that it says."""

    def run(words):
        capsys.readouterr()
        with warnings.catch_warnings():
            warnings.simplefilter("default")  # a command prints its warnings
            try:
                code = main(words)
            except SystemExit as stopped:
                code = stopped.code
        streams = capsys.readouterr()
        return code, " ".join(f"{streams.out} {streams.err}".split())

    return run


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_command_succeeds_when_its_message_is_followed(name, folder, messages_of):
    situation = SITUATIONS[name]
    write(folder / "rows.csv", situation.rows)
    for path, content in (situation.files or {}).items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        write(Path(path), content)
    words = shlex.split(situation.command)
    _, message = messages_of(words)
    assert situation.message in message
    attempts = situation.follow(words, the_sentence(message, situation.message))
    assert len(attempts) == situation.n_attempts, (message, attempts)
    if situation.mended:
        write(folder / "rows.csv", situation.mended)
    for attempt in attempts:
        for step in attempt:
            code, message = messages_of(step)
            assert code == 0, (step, message)
        assert situation.message not in message
        for output in folder.glob("OUT.*"):
            remove(output)


def write(path, rows):
    """Write text or bytes."""
    path.write_bytes(rows if isinstance(rows, bytes) else rows.encode())


def remove(path):
    """Remove a file or a store."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def the_sentence(message, part):
    """The sentence with these words, among all that a command says."""
    for sentence in message.split(" note: "):
        if part in sentence:
            return sentence.removeprefix("mmcnb: ").removeprefix("mmcnb convert: ")
    return message
