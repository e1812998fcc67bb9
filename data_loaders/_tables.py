"""Text tables of the UCI repository: lines of fields, one of which is the class."""

from __future__ import annotations

import numpy as np


def fields(content: bytes, separator: str | None = ",") -> list[list[str]]:
    """Split a table into its fields, without blank lines.

    Parameters
    ----------
    content : bytes
        The text.
    separator : str or None, default=","
        Separator of the fields; None is any white space.

    Returns
    -------
    list of list of str
        The fields of each line, without white space around them.

    Examples
    --------
    >>> from mmcnb.datasets._tables import fields
    >>> fields(b"1, 2,yes\\r\\n\\r\\n3,4,no\\r\\n")
    [['1', '2', 'yes'], ['3', '4', 'no']]
    """
    lines = content.decode("ascii").splitlines()
    return [
        [field.strip() for field in line.split(separator)]
        for line in lines
        if line.strip()
    ]


def numbers(
    rows: list[list[str]], class_column: int = -1, classes: dict[str, int] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Read a table of numbers and a class.

    Parameters
    ----------
    rows : list of list of str
        The result of `fields`. The class is removed from each row.
    class_column : int, default=-1
        The column of the class.
    classes : dict of str to int or None, default=None
        Number of each class name; None if the classes are whole numbers.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features), dtype float64
        The other columns.
    y : ndarray of shape (n_samples,), dtype int64
        The classes.

    Examples
    --------
    >>> from mmcnb.datasets._tables import numbers
    >>> X, y = numbers([["0.5", "2", "yes"], ["1.5", "4", "no"]], classes={"no": 0, "yes": 1})
    >>> X.tolist(), y.tolist()
    ([[0.5, 2.0], [1.5, 4.0]], [1, 0])
    """
    column = [row.pop(class_column) for row in rows]
    y = (
        codes(column, classes)
        if classes
        else np.array(column, np.float64).astype(np.int64)
    )
    return np.array(rows, np.float64), y


def codes(column: list[str], values: dict[str, int]) -> np.ndarray:
    """Replace words by their numbers.

    Parameters
    ----------
    column : list of str
        The words.
    values : dict of str to int
        The number of each word.

    Returns
    -------
    ndarray of shape (len(column),), dtype int64
        The numbers.

    Raises
    ------
    ValueError
        If a word has no number.
    """
    unknown = set(column) - set(values)
    if unknown:
        raise ValueError(f"{min(unknown)!r} is not one of {', '.join(values)}")
    return np.array([values[word] for word in column], dtype=np.int64)
