"""Facts of a data set that are known in advance, and the check of its rows against them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mmcnb import InputError

Rows = Any  # an ndarray or a csr_matrix; SciPy ships no types
Block = tuple[Rows, np.ndarray]
Reader = Callable[..., Iterator[Block]]


@dataclass(frozen=True)
class File:
    """One file of a data set.

    Parameters
    ----------
    path : str
        Path relative to the data folder.
    url : str or None
        Address at which the publisher serves exactly this file. None if no server has
        the file, or only in a form that must be unpacked by hand.
    sha256 : str or None
        Checksum of the file as it is served; None if it is not known.
    made : bool, default=False
        Whether the file was made from a publisher's files and is therefore on no
        server.
    """

    path: str
    url: str | None
    sha256: str | None = None
    made: bool = False


Part = tuple[tuple[int, ...], tuple[File, ...]]


@dataclass(frozen=True)
class DataSet:
    """The facts of a data set, and the function that reads its files.

    Parameters
    ----------
    name : str
        Name of the data set in `load`.
    n_features : int
        Number of columns.
    class_counts : mapping of int to int
        Number of rows of each class.
    files : tuple of File
        Files of the data set, in the order of the arguments of `read`.
    page : str
        Address of the publisher's page about the data set.
    read : callable
        Function that accepts the content (bytes) of each file and yields blocks ``(X,
        y)`` in row order.
    dtype : {"float32", "float64"}, default="float64"
        Type of the features.
    layout : {"dense", "csr"}, default="dense"
        Layout of the rows unless another one is requested.
    """

    name: str
    n_features: int
    class_counts: Mapping[int, int]
    files: tuple[File, ...]
    page: str
    read: Reader
    dtype: str = "float64"
    layout: str = "dense"

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return sum(self.class_counts.values())

    def blocks(self, contents: list[bytes]) -> Iterator[Block]:
        """Read the blocks of rows, and check the facts after the last block.

        Parameters
        ----------
        contents : list of bytes
            The content of each file.

        Yields
        ------
        X : ndarray or csr_matrix of shape (rows, n_features), of the data set's dtype
            The rows.
        y : ndarray of shape (rows,), dtype int64
            Their classes.

        Raises
        ------
        InputError
            If the files cannot be parsed, or the number of features or the rows of each
            class are wrong.
        """
        counts: Counter[int] = Counter()
        try:
            for X, y in self.read(*contents):
                self._check_rows(X)
                counts.update(y.tolist())
                yield X.astype(self.dtype, copy=False), y.astype(np.int64, copy=False)
        except InputError:
            raise
        except (ValueError, IndexError, KeyError) as error:
            raise InputError(
                f"{self.name}: {self._paths} cannot be parsed ({error}); {self._remedy}."
            ) from error
        if counts != Counter(self.class_counts):
            raise InputError(
                f"{self.name}: {self._paths} should have classes {_readable(self.class_counts)} but have "
                f"{_readable(counts)}; {self._remedy}."
            )

    def pair(self, first: int, second: int) -> DataSet:
        """Return the data set of only two of the classes, which keep their numbers.

        Parameters
        ----------
        first, second : int
            The classes.

        Returns
        -------
        DataSet
            Named ``NAME-FIRSTvSECOND``.
        """

        def read(*contents: bytes) -> Iterator[Block]:
            for X, y in self.read(*contents):
                wanted = (y == first) | (y == second)
                yield X[wanted], y[wanted]

        counts = {label: self.class_counts[label] for label in sorted((first, second))}
        return replace(
            self, name=f"{self.name}-{first}v{second}", class_counts=counts, read=read
        )

    @property
    def _paths(self) -> str:
        return " and ".join(file.path for file in self.files)

    @property
    def _remedy(self) -> str:
        return f"get the original from {self.page}"

    def _check_rows(self, X: Rows) -> None:
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise InputError(
                f"{self.name}: {self._paths} should have {self.n_features} features a row but have "
                f"{X.shape[-1]}; {self._remedy}."
            )
        if not np.isfinite(X.data if issparse(X) else X).all():
            raise InputError(
                f"{self.name}: {self._paths} contain a value that is not finite; {self._remedy}."
            )


def published_files(
    folder: str, url: str, sha256: Mapping[str, str]
) -> tuple[File, ...]:
    """Return the files of a folder that a publisher serves under their own names, given the sha256 of each."""
    return tuple(
        File(f"{folder}/{name}", f"{url}/{name}", digest)
        for name, digest in sha256.items()
    )


def whole_and_parts(
    name: str,
    n_features: int,
    parts: Mapping[str, Part],
    page: str,
    read: Reader,
    dtype: str = "float64",
) -> list[DataSet]:
    """Return a set of digits that is published in parts: all rows, and the rows of each part.

    Parameters
    ----------
    name : str
        Name of the whole data set; a part has the name ``NAME-PART``.
    n_features : int
        Number of columns.
    parts : mapping of str to tuple
        For each part, the number of rows of each digit, and the files.
    page, read, dtype
        As in `DataSet`.
    """
    facts = [(f"-{part}", counts, files) for part, (counts, files) in parts.items()]
    counts, files = zip(*parts.values(), strict=True)
    facts.insert(0, ("", tuple(map(sum, zip(*counts, strict=True))), sum(files, ())))
    return [
        DataSet(
            name + part, n_features, dict(enumerate(counts)), files, page, read, dtype
        )
        for part, counts, files in facts
    ]


def _readable(counts: Mapping[int, int]) -> str:
    return (
        ", ".join(f"{label}: {counts[label]}" for label in sorted(counts)) or "no rows"
    )
