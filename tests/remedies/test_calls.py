"""Each remedy that a call in Python names is followed, and then the call succeeds."""

import re
import warnings
from typing import Any, NamedTuple

import anndata
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
import scipy.spatial
import sklearn.feature_extraction.text
import sklearn.neighbors

import mmcnb
import mmcnb.metrics
import mmcnb.stores
from tests.remedies.calls import (
    arguments,
    by_hand,
    choices,
    expressions,
    least_memory,
    shown_values,
    without_argument,
)
from tests.remedies.tables import PLAIN, beside, lines, numbers


class Situation(NamedTuple):
    """A call with rows X, its message, and how the message is followed."""

    X: str
    call: str
    message: str
    follow: Any = arguments
    rows: str | bytes = PLAIN  # of rows.csv
    n_attempts: int = 1


FIT = "mmcnb.CPMMC(random_state=0).fit(X)"
SEARCH = "mmcnb.MaximumMarginClustering(random_state=0).fit(X)"
THREE = "mmcnb.MaximumMarginClustering(3, random_state=0).fit(X)"
READ = "mmcnb.read_table(X)"
FILE = "'rows.csv'"


def with_column(values):
    """A frame of pandas with another column."""
    return f"frame.assign(what={values})"


def day(k):
    """A date whose day and month cannot be told apart."""
    return f"{1 + k % 12}/{1 + k % 11}/2025"


DAYS = with_column("[f'{1 + k % 12}/{1 + k % 11}/2025' for k in range(len(frame))]")
SITUATIONS = {
    # Arrays
    "NaN": Situation(
        "spoilt(np.nan)", "mmcnb.open_samples(X)", "contains NaN at row 3", expressions
    ),
    "infinity": Situation(
        "spoilt(np.inf)", FIT, "contains infinity at row 3", expressions
    ),
    "one dimension": Situation(
        "B[:, 0]",
        FIT,
        "is a 1-D array",
        by_hand("X.reshape(-1, 1)", X="X.reshape(-1, 1)"),
    ),
    "one row at predict": Situation(
        "B[0]",
        "model.predict(X)",
        "is a 1-D array",
        by_hand("X.reshape(1, -1)", X="X.reshape(1, -1)"),
    ),
    "three dimensions": Situation(
        "B.reshape(50, 3, 3)", FIT, "is a 3-D array", expressions
    ),
    "no rows": Situation("B[:0]", FIT, "0 sample(s)", by_hand("give X rows", X="B")),
    "no columns": Situation(
        "B[:, :0]", FIT, "0 feature(s)", by_hand("give X columns", X="B")
    ),
    "one row": Situation(
        "B[:1]", FIT, "contains 1 sample(s)", by_hand("pass more rows", X="B")
    ),
    "equal rows": Situation(
        "np.ones((9, 2))",
        FIT,
        "all rows are equal",
        by_hand("pass rows that differ", X="B"),
    ),
    "numbers as text": Situation("B.astype(str)", FIT, "contains text", expressions),
    "numbers as bytes": Situation("B.astype('S')", FIT, "contains text", expressions),
    "complex numbers": Situation(
        "B + 1j", FIT, "complex numbers", by_hand("X.real", X="X.real")
    ),
    "dates": Situation(
        "(B * 1e6).astype('datetime64[s]')", FIT, "contains dates", expressions
    ),
    "durations": Situation(
        "(B * 1e6).astype('timedelta64[s]')", FIT, "contains durations", expressions
    ),
    "objects": Situation(
        "np.array([[1, 2, object()]] * 9 + [[2, 3, 1]])",
        FIT,
        "at row 0, column 2",
        by_hand("drop its column", X="X[:, :2].astype(float)"),
    ),
    "a matrix of NumPy": Situation(
        "np.asmatrix(B)", FIT, "is an np.matrix", expressions
    ),
    "masked values": Situation(
        "np.ma.masked_array(B, np.eye(*B.shape))", FIT, "masked values", expressions
    ),
    "an empty column": Situation(
        "np.c_[B, [np.nan] * len(B)]", FIT, "no row has a value", expressions
    ),
    "ragged rows": Situation(
        "[[1, 2], [3]]",
        FIT,
        "rows of different lengths",
        by_hand("pass rows x features", X="[[1, 2], [3, 5]]"),
    ),
    "sparse matrices in a list": Situation(
        "[scipy.sparse.csr_array(B)] * 2", FIT, "list of sparse matrices", expressions
    ),
    "documents": Situation(
        "['the red cat', 'a blue dog', 'some green bird'] * 5",
        FIT,
        "convert documents to numbers",
        expressions,
    ),
    "a dictionary": Situation(
        "{'a': [1.0, 2], 'b': [2, 5]}",
        FIT,
        "X is a dict",
        by_hand("a data frame", X="pd.DataFrame(X)"),
    ),
    "a generator": Situation(
        "(row for row in B)", FIT, "cannot be read", by_hand("an array", X="B")
    ),
    "one column of pandas": Situation(
        "frame.a", FIT, "X is one column of a frame", expressions
    ),
    "one column of Polars": Situation(
        "pl.Series('a', [1.0, 2, 5])",
        FIT,
        "X is one column of a frame",
        expressions,
    ),
    "indices of a sparse matrix": Situation(
        "wrong_csr()",
        FIT,
        "column index 9 in row 1 is outside 0..2",
        by_hand("write the matrix again", X="scipy.sparse.csr_array(B)"),
    ),
    # Distances
    "a dense matrix of distances": Situation(
        "distances",
        "mmcnb.MaximumMarginClustering(metric='precomputed', random_state=0).fit(X)",
        "is dense, but metric='precomputed' expects",
        expressions,
    ),
    "distances as rows": Situation(
        "distances",
        SEARCH,
        "cluster by distances with",
        by_hand(
            'mmcnb.MaximumMarginClustering(metric="precomputed").fit(sklearn',
            call='mmcnb.MaximumMarginClustering(metric="precomputed").fit('
            'sklearn.neighbors.kneighbors_graph(X, 25, mode="distance", '
            'metric="precomputed"))',
        ),
    ),
    "rows as distances": Situation(
        "B",
        "mmcnb.MaximumMarginClustering(metric='precomputed', random_state=0).fit(X)",
        "is not a sparse matrix of distances",
        by_hand(
            "sklearn.neighbors.kneighbors_graph(rows, 25, mode='distance')",
            X="sklearn.neighbors.kneighbors_graph(X, 25, mode='distance')",
        ),
    ),
    "a kernel of distances": Situation(
        "sklearn.neighbors.kneighbors_graph(B, 25, mode='distance')",
        "mmcnb.MaximumMarginClustering(metric='precomputed', kernel='rbf', "
        "random_state=0).fit(X)",
        "cannot be combined with kernel='rbf'",
        by_hand(
            "pass kernel='graph' and scale=None",
            call="mmcnb.MaximumMarginClustering(metric='precomputed', kernel='graph', "
            "scale=None, random_state=0).fit(X)",
        ),
    ),
    "cosines of one column": Situation(
        "B[:, :1]",
        "mmcnb.MaximumMarginClustering(metric='cosine', random_state=0).fit(X)",
        "needs at least 2 columns, but n_features=1",
    ),
    # Frames
    "codes in a frame": Situation(
        with_column("[f'{k:05}' for k in range(len(frame))]"),
        FIT,
        "its numbers begin with 0, as codes do); keep=['what']",
    ),
    "names in a frame": Situation(
        with_column("[f'n{k}' for k in range(len(frame))]"), FIT, "; keep=['what']"
    ),
    "names in a frame of Polars": Situation(
        "pl.DataFrame({'a': B[:, 0], 'n': [f'n{k}' for k in range(len(B))]})",
        FIT,
        "; keep=['n']",
    ),
    "names in a table of Arrow": Situation(
        "pa.table({'a': B[:, 0], 'n': [f'n{k}' for k in range(len(B))]})",
        FIT,
        "; keep=['n']",
    ),
    "texts alone": Situation(
        "pd.DataFrame({'t': [f'n{k}' for k in range(40)]})",
        FIT,
        "no column is left as a feature: keep=['t'] keeps it",
    ),
    "numbers of rows in a frame": Situation(
        with_column("range(len(frame))"), FIT, "it numbers the rows); keep=['what']"
    ),
    "dates in a frame": Situation(
        "records", FIT, "recorded), 'customer_id' (it is an", n_attempts=2
    ),
    "dates of a frame that stay": Situation(
        "records[['entered', 'a']]",
        FIT,
        "'entered' (its dates show when rows were recorded) is kept",
    ),
    "an identifier of a frame that stays": Situation(
        "records[['customer_id', 'a']]",
        FIT,
        "is kept, because few columns would remain",
    ),
    "even numbers in a frame": Situation(
        "records.rename(columns={'customer_id': 'c', 'order': 'ref'})",
        FIT,
        "all numbers of 'ref' are distinct and spread evenly",
    ),
    "units in a frame": Situation(
        with_column("[f'{k % 7} kg' for k in range(len(frame))]"),
        FIT,
        "numbers were read without their units: 'what' (kg); text=['what']",
    ),
    "answers in a frame": Situation(
        with_column("[('often', 'never', 'always')[k % 3] for k in range(len(frame))]"),
        FIT,
        "order: 'what' (never < often < always); text=['what'] of mmcnb.read_table",
    ),
    "texts outside of an order in a frame": Situation(
        with_column("[('lo', 'mid', 'top')[k % 3] for k in range(len(frame))]"),
        "mmcnb.read_table(X, orders={'what': ['lo', 'mid']})",
        "such as 'top', are not in the given order: add their texts to the order",
        n_attempts=3,
    ),
    "marks in a frame": Situation(
        with_column("[('none', 'red', 'blue')[k % 3] for k in range(len(frame))]"),
        FIT,
        "'none' is a category of 'what'; na_values=['none'] of mmcnb.read_table",
    ),
    "a known mark of gaps in a frame": Situation(
        with_column("[-999 if k % 9 == 2 else k * k % 37 for k in range(len(frame))]"),
        FIT,
        "rows of 'what'; na_values={'what': ''} of mmcnb.read_table",
    ),
    "days or months in a frame": Situation(
        DAYS, FIT, "specifies which field these dates begin with", n_attempts=2
    ),
    "days or months of a frame asked for": Situation(
        DAYS,
        "mmcnb.CPMMC(random_state=0).fit(X, columns='all')",
        "may begin with the day or the month",
        n_attempts=2,
    ),
    "documents in a frame": Situation(
        with_column("[f'{k * k} words, and more of them in {k}' for k in range(150)]"),
        "mmcnb.CPMMC(random_state=0).fit(X, columns='all')",
        "its texts are documents",
    ),
    "an empty column of a frame": Situation(
        with_column("None"),
        "mmcnb.CPMMC(random_state=0).fit(X, columns='all')",
        "no cell has a value",
    ),
    "complex numbers in a frame": Situation(
        with_column("1j"), FIT, "which is not a number, text or date"
    ),
    "objects in a frame": Situation(
        with_column("object()"), FIT, "which is not a number, text or date"
    ),
    "an infinite cell of a frame": Situation(
        with_column("[np.inf, *range(1, len(frame))]"), FIT, "infini"
    ),
    "a misspelt column of a frame": Situation(
        "frame",
        "mmcnb.CPMMC(random_state=0).fit(X, columns=['aa', 'b'])",
        "perhaps 'a' is meant",
        by_hand(
            "perhaps 'a' is meant",
            call="mmcnb.CPMMC(random_state=0).fit(X, columns=['a', 'b'])",
        ),
    ),
    "some names": Situation(
        "frame.rename(columns={'a': 0})", FIT, "has a column 0", expressions
    ),
    "a lazy frame": Situation(
        "pl.LazyFrame({'a': [1.0, 2, 5]})",
        FIT,
        "is lazy",
        by_hand("pass X.collect()", X="X.collect()"),
    ),
    "a sparse frame around other values": Situation(
        "pd.DataFrame(dict.fromkeys('ab', pd.arrays.SparseArray([1.0, 1, 0, 5], "
        "fill_value=1)))",
        FIT,
        "has sparse columns with a fill value other than 0",
        expressions,
    ),
    "a frame without columns": Situation(
        "pd.DataFrame()",
        FIT,
        "has no columns",
        by_hand("add at least one", X="frame"),
    ),
    "an option of CSV files for a frame": Situation(
        "frame",
        "mmcnb.read_table(X, header='no')",
        "header applies to CSV files only",
        without_argument("header"),
    ),
    # Files
    "codes in a file": Situation(
        FILE, FIT, "; keep=['what'] (--keep what)", rows=beside(lambda k: f"{k:05}")
    ),
    "units in a file": Situation(
        FILE,
        FIT,
        "without their units: 'what' (kg); text=['what']",
        rows=beside(lambda k: f"{k * k % 7} kg"),
    ),
    "days or months in a file": Situation(
        FILE,
        FIT,
        "specifies which field these dates begin with",
        rows=beside(day),
        n_attempts=2,
    ),
    "marks in a file": Situation(
        FILE,
        FIT,
        "'none' is a category of 'what'",
        rows=beside(lambda k: ("none", "red", "blue")[k % 3]),
    ),
    "commas in numbers": Situation(
        FILE,
        FIT,
        "numbers such as 1,234 were read with",
        rows=lines("age;what", lambda k: f"{k % 5};1,{100 + k * k % 800}"),
    ),
    "a longer header": Situation(
        FILE,
        FIT,
        "this header has 3 names",
        rows=PLAIN.replace("pay", "pay,more", 1),
    ),
    "a header for decimals": Situation(
        FILE, READ, "this header has one name", rows=lines("age", numbers), n_attempts=2
    ),
    "another encoding": Situation(
        FILE,
        "mmcnb.read_table(X, encoding='utf-8')",
        "this is not UTF-8 text",
        rows=beside(lambda k: f"Zoë{k % 3}").encode("cp1252"),
    ),
    "missing cells refused": Situation(
        FILE,
        "mmcnb.read_table(X, missing='refuse')",
        "the cell has no value",
        rows=PLAIN.replace("\n3,9\n", "\n,9\n", 1),
        n_attempts=2,
    ),
    "documents in a file": Situation(
        FILE,
        "mmcnb.CPMMC(random_state=0).fit(X, columns='all')",
        "its texts are documents",
        rows=beside(lambda k: f"{k * k} words and more of them in {k}"),
    ),
    "an unknown header": Situation(
        FILE,
        "mmcnb.read_table(X, header='maybe')",
        "header='maybe' is unknown",
        shown_values,
    ),
    "unknown dates": Situation(
        FILE,
        "mmcnb.read_table(X, dates='iso')",
        "dates='iso' is unknown",
        choices,
        n_attempts=6,
    ),
    "unknown gaps": Situation(
        FILE,
        "mmcnb.read_table(X, missing='zero')",
        "missing='zero' is unknown",
        choices,
        n_attempts=6,
    ),
    "lines that are none": Situation(
        FILE,
        "mmcnb.read_table(X, skip_lines=-1)",
        "skip_lines=-1 is not a number of lines",
        shown_values,
    ),
    "columns that are none": Situation(
        FILE,
        "mmcnb.read_table(X, columns=5.5)",
        "columns=5.5 is not a list",
        by_hand("pass names or indices", call="mmcnb.read_table(X, columns=[1])"),
    ),
    "no file": Situation(
        "'none.csv'", FIT, "does not exist", by_hand("check the path", X="'rows.csv'")
    ),
    "no path": Situation(
        "''", FIT, "X is empty", by_hand("name a file or a folder", X="'rows.csv'")
    ),
    "no model": Situation(
        "'m'",
        "mmcnb.load(X)",
        "there is no model at m; write one with model.save('m')",
        by_hand("model.save('m')", call="(model.save('m'), mmcnb.load(X))"),
    ),
    # Options that do not apply
    "columns of an array": Situation(
        "B",
        "mmcnb.CPMMC(random_state=0).fit(X, columns=[0])",
        "columns applies to data frames and tables only",
        without_argument("columns"),
    ),
    "kept columns of an array": Situation(
        "B",
        "mmcnb.CPMMC(random_state=0).fit(X, keep=[0])",
        "keep applies to data frames and tables only",
        without_argument("keep"),
    ),
    "an element of an array": Situation(
        "B",
        "mmcnb.CPMMC(random_state=0).fit(X, element='X')",
        "has no element 'X': leave element out",
        without_argument("element"),
    ),
    "another element of AnnData": Situation(
        "anndata.AnnData(B)",
        "mmcnb.CPMMC(random_state=0).fit(X, element='layers/raw')",
        "has no element 'layers/raw'",
        by_hand(
            "Name one with element",
            call="mmcnb.CPMMC(random_state=0).fit(X, element='X')",
        ),
    ),
    # Weights and known rows
    "weights of another shape": Situation(
        "B",
        "mmcnb.CPMMC(random_state=0).fit(X, sample_weight=np.ones((3, 3)))",
        "sample_weight has shape (3, 3)",
        by_hand("or a single number", call="mmcnb.CPMMC().fit(X, sample_weight=1)"),
    ),
    "too few weights": Situation(
        "B",
        "mmcnb.CPMMC(random_state=0).fit(X, sample_weight=np.ones(3))",
        "sample_weight has 3 entries for 150 rows",
        by_hand(
            "pass one weight per row",
            call="mmcnb.CPMMC().fit(X, sample_weight=np.ones(150))",
        ),
    ),
    "negative weights": Situation(
        "B",
        "mmcnb.CPMMC(random_state=0).fit(X, sample_weight=-np.ones(150))",
        "sample_weight of row 0 is -1.0",
        by_hand(
            "all weights must be finite and at least 0",
            call="mmcnb.CPMMC().fit(X, sample_weight=np.ones(150))",
        ),
    ),
    "known rows beyond the last": Situation(
        "B",
        THREE.replace("fit(X", "fit(X, partial_labels={500: 0}"),
        "partial_labels names row 500",
        by_hand(
            "row numbers from 0 to 149",
            call=THREE.replace("fit(X", "fit(X, partial_labels={149: 0}"),
        ),
    ),
    "a known cluster beyond the last": Situation(
        "B",
        THREE.replace("fit(X", "fit(X, partial_labels={5: 7}"),
        "partial_labels of row 5 is 7",
        by_hand(
            "labels from 0 to 2",
            call=THREE.replace("fit(X", "fit(X, partial_labels={5: 2}"),
        ),
    ),
    # Parameters
    "an unknown kernel": Situation(
        "B",
        "mmcnb.MaximumMarginClustering(kernel='cubic').plan(X)",
        "kernel='cubic' is unknown",
        choices,
        n_attempts=4,
    ),
    "an unknown scale": Situation(
        "B",
        "mmcnb.MaximumMarginClustering(2, scale='log').fit(X)",
        "scale='log' is unknown",
        choices,
        n_attempts=3,
    ),
    "a range upside down": Situation(
        "B",
        "mmcnb.MaximumMarginClustering(n_clusters=(5, 3)).fit(X)",
        "has its limits in the wrong order",
        shown_values,
    ),
    "no range": Situation(
        "B",
        "mmcnb.MaximumMarginClustering(n_clusters=(1, 2, 3)).fit(X)",
        "is not a range",
        by_hand(
            "as (5, 30)",
            call="mmcnb.MaximumMarginClustering(n_clusters=(5, 30)).fit(X)",
        ),
    ),
    "more clusters than rows": Situation(
        "B[:4]",
        "mmcnb.MaximumMarginClustering(n_clusters=5).fit(X)",
        "n_clusters=5 is more than the 4 rows",
        arguments,
    ),
    "a size beside a number": Situation(
        "B",
        "mmcnb.MaximumMarginClustering(n_clusters=3, min_cluster_size=4).fit(X)",
        "applies only if the number of clusters is chosen",
        without_argument("min_cluster_size"),
    ),
    "a paper's basis": Situation(
        "B",
        "mmcnb.SparseKernelMMC(basis='paper', kernel='linear').fit(X)",
        "needs kernel='rbf'",
        by_hand(
            "use basis='landmarks'",
            call="mmcnb.SparseKernelMMC(basis='landmarks', kernel='linear').fit(X)",
        ),
    ),
    "kernels that are no list": Situation(
        "B",
        "mmcnb.MultipleKernelClustering(kernels='rbf').fit(X)",
        "kernels='rbf' is unknown",
        by_hand(
            "a list such as ['rbf']",
            call="mmcnb.MultipleKernelClustering(kernels=['rbf']).fit(X)",
        ),
    ),
    "no thread": Situation(
        "B",
        "mmcnb.CPMMC(n_jobs=0).fit(X)",
        "n_jobs=0 means no threads",
        by_hand("-1 for all cores", call="mmcnb.CPMMC(n_jobs=-1).fit(X)"),
    ),
    "little memory": Situation(
        "B",
        "mmcnb.CPMMC(memory_limit='1MiB').fit(X)",
        "the least that works is",
        least_memory,
    ),
    "no engine": Situation(
        "B",
        "mmcnb.CPMMC(engine=5).fit(X)",
        "engine=5 is not an engine",
        by_hand("None for threads", call="mmcnb.CPMMC(engine=None).fit(X)"),
    ),
    "an unknown level of words": Situation(
        "B",
        "mmcnb.CPMMC(verbose='x').fit(X)",
        "verbose='x' is not an integer",
        by_hand("give 0 or 1", call="mmcnb.CPMMC(verbose=0).fit(X)"),
    ),
    "a column that decides alone": Situation(
        "frame.assign(a=1000 * frame.a)",
        "mmcnb.UnsupervisedRLS(3, n_init=1, random_state=0).fit(X)",
        "column 'a' has more than 99% of the variance",
    ),
    "counts of words": Situation(
        "counts",
        "mmcnb.UnsupervisedRLS(3, n_init=1, random_state=0).fit(X)",
        "the rows look like counts",
        expressions,
    ),
    "a gamma far too large": Situation(
        "B",
        "mmcnb.SparseKernelMMC(gamma=1e6, random_state=0).fit(X)",
        "is too large: kernel values between different rows are almost 0",
    ),
    "shares of fewer clusters": Situation(
        "B",
        "mmcnb.UnsupervisedRLS(3, n_init=1, cluster_sizes=[0.5, 0.5]).fit(X)",
        "one share for each of the 3 clusters, not 2",
        by_hand(
            "one share for each",
            call="mmcnb.UnsupervisedRLS(3, cluster_sizes=[0.4, 0.3, 0.3]).fit(X)",
        ),
    ),
    "shares beyond one": Situation(
        "B",
        "mmcnb.UnsupervisedRLS(2, n_init=1, cluster_sizes=[0.5, 0.6]).fit(X)",
        "must sum to 1, not to 1.1",
        by_hand(
            "divide them by their sum",
            call="mmcnb.UnsupervisedRLS(2, cluster_sizes=np.array([5, 6]) / 11).fit(X)",
        ),
    ),
    "a least size beyond all rows": Situation(
        "B",
        "mmcnb.MaximumMarginClustering(min_cluster_size=400).fit(X)",
        "is too large for one cluster of 150 rows",
        by_hand(
            "pass at most 150",
            call="mmcnb.MaximumMarginClustering(min_cluster_size=150).fit(X)",
        ),
    ),
    "more clusters than rows that differ": Situation(
        "np.repeat(np.eye(2), 20, axis=0)",
        "mmcnb.UnsupervisedRLS(4, random_state=0).fit(X)",
        "the sample has 2 rows that differ",
        by_hand(
            "n_clusters=2 or fewer",
            call="mmcnb.UnsupervisedRLS(n_clusters=2, random_state=0).fit(X)",
        ),
    ),
    "numbers whose squares overflow": Situation(
        "B * 1e200",
        FIT,
        "the squares of the values are out of range",
        by_hand("multiply the columns by a constant", X="X * 1e-200"),
    ),
    "None in a list": Situation(
        "[[1, None], [2, 3], [4, 1]]",
        FIT,
        "X contains None",
        by_hand("fill in or drop such rows", X="[[2, 3], [4, 1]]"),
    ),
    "texts beside numbers in a list": Situation(
        "[['red', 1], ['blue', 2]] * 20",
        FIT,
        "X contains text",
        by_hand("pass pandas.DataFrame(X)", X="pd.DataFrame(X)"),
    ),
    "a frame for AnnData": Situation(
        "frame",
        "mmcnb.annotate(X)",
        "adata is of type DataFrame",
        by_hand("pass an AnnData object", X="anndata.AnnData(B)"),
    ),
    "settings without a unit": Situation(
        "B",
        "mmcnb.config(memory_limit='lots').__enter__()",
        "memory_limit='lots' is not a number of bytes",
        by_hand("like '512MiB'", call="mmcnb.config(memory_limit='512MiB').__exit__()"),
    ),
    "rows far from a model": Situation(
        "B + 1000",
        "mmcnb.MaximumMarginClustering(2, kernel='rbf', random_state=0)"
        ".fit(B).update(X)",
        "rows are far from the rows of the fit",
        by_hand("fit(X, like=model)", call=SEARCH.replace("(X", "(X, like=model")),
    ),
    # Other rows
    "fewer columns": Situation(
        "B[:, :2]",
        "model.predict(X)",
        "X has 2 features",
        by_hand("rows with the columns of the fit", X="B"),
    ),
    "columns in another order": Situation(
        "frame[['b', 'a', 'c']]",
        "estimator.predict(X)",
        "must be in the same order",
        expressions,
    ),
    "columns of other names": Situation(
        "frame.rename(columns={'a': 'z'})",
        "estimator.predict(X)",
        "Feature names unseen at fit time",
        by_hand("Pass rows with the columns of the fit", X="frame"),
    ),
    "a column that is missing": Situation(
        "frame",
        "of_texts.predict(X)",
        "has no column 'plan'",
        by_hand("which the model needs", X="texts"),
    ),
    "an array for a frame": Situation(
        "B",
        "of_texts.predict(X)",
        "is not a table with the columns of the fit",
        by_hand("pass a data frame", X="texts"),
    ),
    "dates for numbers": Situation(
        "texts.assign(a=pd.Timestamp('2020'))",
        "of_texts.predict(X)",
        "and was a number in the fit",
        by_hand("convert it to a number", X="texts"),
    ),
    "texts for numbers": Situation(
        "texts.assign(a='q')",
        "of_texts.predict(X)",
        "'q' is not a number",
        by_hand("correct it", X="texts"),
    ),
    "too few labels": Situation(
        "B",
        "model.explain(X, labels=[0, 1])",
        "labels has 2 values",
        by_hand(
            "give one label for each row", call="model.explain(X, labels=model.labels_)"
        ),
    ),
    "labels of another format": Situation(
        "B",
        "model.predict(X, 'l.txt')",
        "labels are not written as '.txt'",
        by_hand("a path that ends with .csv", call="model.predict(X, 'l.csv')"),
    ),
    "a table of an array": Situation(
        "B",
        "model.label_table(X)",
        "is not a table, so the clusters cannot be added",
        by_hand("by predict(X, 'labels.csv')", call="model.predict(X, 'labels.csv')"),
    ),
    "classes of other rows": Situation(
        "[0, 1, 1]",
        "mmcnb.metrics.adjusted_rand_index(X, [0, 1])",
        "y_true has 3 rows and labels has 2",
        by_hand("give one value of each per row", X="[0, 1]"),
    ),
    # Stores
    "a store that is there": Situation(
        "B",
        "mmcnb.stores.convert(X, 'blobs.zarr')",
        "exists already",
        arguments,
    ),
    "an unknown layout": Situation(
        "B",
        "mmcnb.stores.convert(X, 'o.zarr', overwrite=True, layout='wide')",
        "layout='wide' is unknown",
        choices,
        n_attempts=3,
    ),
    "an unknown type": Situation(
        "B",
        "mmcnb.stores.convert(X, 'o.zarr', overwrite=True, dtype='int8')",
        "dtype='int8' is not supported",
        choices,
        n_attempts=2,
    ),
    "an option of tables for an array": Situation(
        "B",
        "mmcnb.stores.convert(X, 'o.zarr', columns=[0])",
        "columns applies to CSV",
        without_argument("columns"),
    ),
}


@pytest.fixture(scope="module")
def names():
    """What calls and remedies name."""
    random = np.random.default_rng(0)
    B = random.normal(size=(150, 3)) + 9 * (np.arange(150) % 3)[:, None]
    frame = pd.DataFrame(B, columns=["a", "b", "c"])
    texts = frame.assign(plan=np.array(["x", "y", "z"])[np.arange(150) % 3])

    records = pd.DataFrame(
        {
            "entered": pd.Timestamp("2024") + pd.to_timedelta(random.random(400), "D"),
            "customer_id": random.integers(1000, 1200, 400),
            "a": random.normal(size=400),
            "b": random.normal(size=400),
            "order": random.permutation(10**5)[:400],
        }
    )

    def spoilt(value):
        X = B.copy()
        X[3, 1] = value
        return X

    def wrong_csr():
        X = scipy.sparse.csr_array(np.eye(3))
        X.indices[1] = 9
        return X

    shares = 1 / np.arange(1, 301)
    lengths = random.lognormal(4, 1, 200).astype(int) + 5
    words = [random.multinomial(n, shares / shares.sum()) for n in lengths]
    fit = mmcnb.MaximumMarginClustering
    return {
        "B": B,
        "counts": scipy.sparse.csr_array(words),
        "frame": frame,
        "texts": texts,
        "records": records,
        "spoilt": spoilt,
        "wrong_csr": wrong_csr,
        "distances": scipy.spatial.distance.cdist(B, B),
        "model": fit(3, random_state=0).fit(B),
        "estimator": mmcnb.CPMMC(random_state=0).fit(frame),
        "of_texts": fit(3, random_state=0).fit(texts),
        "anndata": anndata,
        "mmcnb": mmcnb,
        "np": np,
        "numpy": np,
        "pa": pa,
        "pd": pd,
        "pl": pl,
        "scipy": scipy,
        "sklearn": sklearn,
    }


def said(call, names):
    """What a call says: its error, or its warnings; and whether it was refused."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            eval(call, dict(names))
        except mmcnb.InputError as error:
            return True, str(error)
    return False, "\n\n".join(str(warning.message) for warning in caught)


def assert_in_python(message):
    """Options of the command line stand beside what Python takes, or in commands."""
    if re.search(r"in Python, mmcnb.read_table takes|or mmcnb.read_table\(", message):
        return
    rest = re.sub(r"`[^`]*`|\(--[^()]*\)", "", message)
    assert "--" not in rest.replace("or --labels labels.csv", "")


def the_part(message, words):
    """The warning with these words, or an error, which may have several lines."""
    parts = [part for part in message.split("\n\n") if words in part]
    return parts[0] if parts else message


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_call_succeeds_when_its_message_is_followed(name, folder, names):
    situation = SITUATIONS[name]
    rows = situation.rows
    (folder / "rows.csv").write_bytes(
        rows if isinstance(rows, bytes) else rows.encode()
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = names | {"X": eval(situation.X, dict(names))}
    _, message = said(situation.call, names)
    assert situation.message in message
    assert_in_python(message)
    attempts = situation.follow(situation.call, the_part(message, situation.message))
    assert len(attempts) == situation.n_attempts, (message, attempts)
    for X, call in attempts:
        given = names | {"X": eval(X, dict(names))}
        is_refused, message = said(call, given)
        assert not is_refused, (X, call, message)
        assert situation.message not in message
