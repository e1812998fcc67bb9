"""Folders from 10x Genomics: a matrix of features by barcodes, and the names of both.

The barcodes, which are the columns of the matrix, are the rows to cluster.
"""

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mmcnb._fit_warnings import Importance, warn
from mmcnb.errors import InputError
from mmcnb.samples.base import Samples
from mmcnb.samples.entries import Entries
from mmcnb.samples.matrix_market import Header, hold_entries, read_header
from mmcnb.samples.row_index import KeptNames, RowIndex
from mmcnb.samples.text import open_text, plain_name

MATRIX = "matrix.mtx"
BARCODES = ("barcodes.tsv",)
FEATURES = ("features.tsv", "genes.tsv")
GENES = "Gene Expression"
"""Feature type that is used by default if there are several types, as in scanpy."""


class Features(NamedTuple):
    """Features of a 10x Genomics matrix that become columns.

    Attributes
    ----------
    names : list of str
        Names of the features.
    kept : ndarray of bool of shape (n_features,), or None
        Whether each feature of the matrix is used; None if all are used.
    """

    names: list[str]
    kept: np.ndarray | None


def choose_features(
    place: str, names: Sequence[str], types: Sequence[str], element: str | None
) -> Features:
    """Choose the features of one type.

    Parameters
    ----------
    place : str
        Path of the features, for messages.
    names : sequence of str
        Symbols or identifiers of the features; they may contain duplicates.
    types : sequence of str
        Type of each feature; empty if the file has no types.
    element : str or None
        The requested type. None selects genes if they are one of several types, and all
        features otherwise.

    Raises
    ------
    InputError
        If no feature has the requested type.
    """
    counts = Counter(types)
    wanted = element
    if element is not None and element not in counts:
        known = ", ".join(map(repr, counts))
        has = f"the features have the types {known}" if counts else "it has no types"
        raise InputError(
            f"{place} has no features of the type {element!r}, and {has}: leave element"
            f"{' out' if not counts else ' (--element) out, or name one of these'}."
        )
    if element is None and GENES in counts:
        wanted = GENES
    if wanted is None or len(counts) < 2:
        return Features(unique_names(names), None)
    kept = np.array([name == wanted for name in types])
    if element is None:
        _warn_of_others(place, counts)
    chosen = [name for name, is_kept in zip(names, kept, strict=True) if is_kept]
    return Features(unique_names(chosen), kept)


def _warn_of_others(place: str, counts: Mapping[str, int]) -> None:
    """Warn that features other than genes are left out.

    ``counts`` has the number of features of each type.
    """
    others = [name for name in counts if name != GENES]
    listed = ", ".join(f"{name!r} ({counts[name]:,})" for name in others)
    option = shlex.quote(others[0])
    warn(
        f"{place} has features of several types, and {listed} are left out: pass "
        f"element={others[0]!r} (--element {option}) to use these instead.",
        Importance.DATA,
    )


def unique_names(names: Sequence[str]) -> list[str]:
    """Number duplicate names as AnnData does: ``A``, ``A-1``, ``A-2``.

    Examples
    --------
    >>> from mmcnb.samples.tenx import unique_names
    >>> unique_names(["TBCE", "A", "TBCE", "TBCE-1", "TBCE"])
    ['TBCE', 'A', 'TBCE-2', 'TBCE-1', 'TBCE-3']
    """
    counts: Counter[str] = Counter()
    taken = set(names)
    seen: set[str] = set()
    made = []
    for name in names:
        unique = name
        if name in seen:
            while unique in taken:
                counts[name] += 1
                unique = f"{name}-{counts[name]}"
            taken.add(unique)
        seen.add(name)
        made.append(unique)
    return made


# -- folders ---------------------------------------------------------------------------


class TenxFiles(NamedTuple):
    """Paths of the files of a 10x Genomics matrix, with None for a missing file."""

    matrix: Path
    barcodes: Path | None
    features: Path | None


def open_tenx_folder(
    folder: Path, element: str | None = None, memory_limit: str | int | None = None
) -> Samples:
    """Open a folder with a matrix, barcodes and features; the barcodes are the rows.

    Parameters
    ----------
    folder : Path
        The folder.
    element : str or None, default=None
        Type of the features to use, such as ``"Antibody Capture"``. None selects genes
        if they are one of several types, and all features otherwise.
    memory_limit : str, int or None, default=None
        Limit on the resident memory; entries that do not fit are written to scratch
        files. None means the same as in `open_samples`.

    Raises
    ------
    InputError
        If a file is missing or damaged, or if its number of lines does not match the
        matrix.
    """
    files = _files_beside(_only_matrix(folder))
    if files.barcodes is None or files.features is None:
        raise _missing_files(folder, files)
    header = read_header(files.matrix)
    barcodes = [cells[0] for cells in _cells(files.barcodes)]
    features = _cells(files.features)
    n_barcodes = len(barcodes)
    n_features = len(features)
    # Some programs write a matrix of barcodes by features instead.
    is_by_rows = (header.n_rows, header.n_columns) == (n_barcodes, n_features)
    if header.n_rows == header.n_columns or not is_by_rows:
        is_by_rows = False
        _check_lines(
            files.barcodes, n_barcodes, files.matrix, header.n_columns, "columns"
        )
        _check_lines(files.features, n_features, files.matrix, header.n_rows, "rows")
    names, types = _names_and_types(features)
    chosen = choose_features(str(files.features), names, types, element)
    return _hold(files.matrix, header, barcodes, chosen, is_by_rows, memory_limit)


def _hold(
    path: Path,
    header: Header,
    barcodes: list[str],
    features: Features,
    is_by_rows: bool,
    memory_limit: str | int | None,
) -> Samples:
    """Read the chosen features of a 10x Genomics folder, with row and column names."""
    kept = features.kept
    numbers = None if kept is None else np.cumsum(kept) - 1

    def placed(entries: Entries) -> Entries:
        if not is_by_rows:
            entries = entries._replace(rows=entries.columns, columns=entries.rows)
        if kept is None or numbers is None:
            return entries
        entries = entries.taken(kept[entries.columns])
        return entries._replace(columns=numbers[entries.columns])

    if header.form != "coordinate":
        raise InputError(
            f"{path}, line 1: the matrix is dense ('array'), but a matrix with "
            "barcodes must be sparse ('coordinate'): give the file itself, whose rows "
            "are used as they are."
        )
    shape = len(barcodes), len(features.names)
    samples = hold_entries(path, header, memory_limit, shape, placed)
    samples.name = str(path.parent)
    samples.feature_names = features.names
    names = KeptNames(np.array(barcodes, np.dtypes.StringDType()))
    samples.row_index = RowIndex(len(barcodes), names=names)
    return samples


def check_is_alone(path: Path) -> None:
    """Warn if a Matrix Market file has 10x Genomics barcodes and features beside it."""
    files = _files_beside(path)
    if files.barcodes is None or files.features is None:
        return
    warn(
        f"the rows of {path} are used as they are, although {files.barcodes.name} "
        "beside it names its columns: give the folder to cluster the barcodes.",
        Importance.DATA,
    )


def _only_matrix(folder: Path) -> Path:
    """Return the only matrix file of a folder.

    Raise InputError if the folder does not have exactly one.
    """
    found = [path for path in _files(folder) if plain_name(path).endswith(".mtx")]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(path.name for path in found[:3])
        raise InputError(
            f"{folder} has {len(found)} matrices, such as {names}: give one of these "
            "files, or move each with its barcodes and features to a folder of its own."
        )
    below = sorted({path.parent for path in folder.rglob("*.mtx*")})
    listed = ", ".join(map(str, below[:3]))
    raise InputError(
        f"{folder} has a matrix in a folder below it: give {listed} "
        f"{'' if len(below) == 1 else '(one of them) '}instead."
    )


def _files(folder: Path) -> list[Path]:
    """Return the files of a folder whose names do not begin with . or _."""
    files = []
    for path in folder.iterdir():
        if path.is_file() and not path.name.startswith((".", "_")):
            files.append(path)
    return sorted(files)


def _files_beside(matrix: Path) -> TenxFiles:
    """Return the files of a matrix: itself, its barcodes and its features.

    The names of these files begin with the same prefix.
    """
    name = plain_name(matrix)
    prefix = name.removesuffix(MATRIX) if name.endswith(MATRIX) else ""
    by_name = {plain_name(path): path for path in _files(matrix.parent)}
    found = []
    for endings in (BARCODES, FEATURES):
        paths = [by_name.get(prefix + ending) for ending in endings]
        found.append(next(filter(None, paths), None))
    return TenxFiles(matrix, *found)


def _missing_files(folder: Path, files: TenxFiles) -> InputError:
    missing = []
    if files.barcodes is None:
        missing.append("barcodes.tsv")
    if files.features is None:
        missing.append("features.tsv (or genes.tsv)")
    return InputError(
        f"{folder} has {files.matrix.name}, but no {' and no '.join(missing)}: add "
        f"{'it' if len(missing) == 1 else 'them'}, or give {files.matrix}, whose rows "
        "are used as they are."
    )


def _cells(path: Path) -> list[list[str]]:
    """Return the tab-separated cells of each line of a text file."""
    with open_text(path) as (_, text):
        content = text.read()
    try:
        lines = content.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{path}, line {number}: the text is not valid UTF-8: write the file again."
        ) from error
    while lines and not lines[-1].strip():
        lines.pop()
    cells = []
    for line in lines:
        cells.append([cell.strip('"') for cell in line.rstrip("\r").split("\t")])
    return cells


def _check_lines(path: Path, n_lines: int, matrix: Path, n: int, what: str) -> None:
    """Raise InputError unless a file has one line per row or column of a matrix.

    ``n`` is the number of rows or columns, and ``what`` is its noun in the message.
    """
    if n_lines == n:
        return
    remedy = "get both files again"
    if n_lines == n + 1:
        remedy = f"delete line 1 if it is a header, or {remedy}"
    raise InputError(
        f"{path} has {n_lines:,} lines, but the size line of {matrix.name} announces "
        f"{n:,} {what}: {remedy}."
    )


def _names_and_types(lines: list[list[str]]) -> tuple[list[str], list[str]]:
    """Return the names and the types of the features that are listed in a file.

    A feature without a symbol is named by its identifier. The types are empty if not
    all features have one.
    """
    names = []
    types = []
    for cells in lines:
        symbol = cells[1] if len(cells) > 1 else ""
        names.append(symbol or cells[0])
        if len(cells) > 2:
            types.append(cells[2])
    return names, types if len(types) == len(lines) else []
