"""Classes of the rows, read from an array or a store, and weights of the classes."""

import numbers
import os
from typing import Any, NamedTuple

import numpy as np
import zarr
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from mmcnb.errors import InputError, shown, worded
from mmcnb.samples import GROUP_ROWS, Samples
from mmcnb.samples.arrays import plain_values
from mmcnb.samples.zarr import describe, open_node
from mmcnb.stores.labels import open_class_labels, read_array


class Side(NamedTuple):
    """One class against all others; the smaller side is the positive side.

    Attributes
    ----------
    number : int
        Index of the class for which the SVM computes decision values.
    sign : int
        +1 if the class is the positive side, -1 if the other classes are the positive
        side.
    name : object
        Name for the history. With two classes, it is the name of the positive class.
    """

    number: int
    sign: int
    name: Any


def sides_of(names: list[Any], counts: np.ndarray) -> list[Side]:
    """Return a `Side` for each SVM.

    There is one SVM if there are two classes, otherwise one SVM per class.
    """
    numbers = range(len(names))
    if len(names) == 2:
        numbers = range(1, 2)
    sides = []
    for number in numbers:
        is_minority = 2 * counts[number] <= counts.sum()
        name = names[number]
        if len(names) == 2 and not is_minority:
            name = names[0]
        sides.append(Side(number, 1 if is_minority else -1, name))
    return sides


class Classes(NamedTuple):
    """The classes of the rows.

    Attributes
    ----------
    names : ndarray of shape (n_classes,)
        Names of the classes, in sorted order.
    codes : ndarray of shape (n_samples,), uint8, uint16 or int32
        Index of each row's class in ``names``.
    counts : ndarray of shape (n_classes,), int64
        Number of rows in each class.
    """

    names: np.ndarray
    codes: np.ndarray
    counts: np.ndarray


def number_classes(labels: np.ndarray) -> Classes:
    """Return the classes that occur in labels, and the code of each label's class.

    Labels are processed in groups to save memory.

    The codes take one byte per row for up to 256 classes, and two bytes for up to
    65,536 classes.
    """
    starts = range(0, labels.size, GROUP_ROWS)
    groups = [np.unique(labels[start : start + GROUP_ROWS]) for start in starts]
    names = np.unique(np.concatenate(groups))
    dtype: Any = np.int32
    if names.size <= 2**16:
        dtype = np.min_scalar_type(names.size - 1)
    codes = np.empty(labels.size, dtype)
    counts = np.zeros(names.size, np.int64)
    for start in starts:
        rows = slice(start, start + GROUP_ROWS)
        found = np.searchsorted(names, labels[rows])
        codes[rows] = found
        counts += np.bincount(found, minlength=names.size)
    return Classes(names, codes, counts)


def read_classes(y: Any, X: Any, samples: Samples) -> Classes:
    """Read the class of each row, and encode the classes as integers.

    Parameters
    ----------
    y : array, Zarr array, path of a Zarr array, Dask array or None
        The class of each row. If None, the labels stored with the rows are used.
    X : object
        The rows as the user passed them.
    samples : Samples
        The opened rows.

    Returns
    -------
    Classes
        The names and counts of the classes, and the class of each row.

    Raises
    ------
    InputError
        If there are no classes, if there is not one class per row, or if the classes
        are continuous values.
    """
    labels = open_class_labels(X) if y is None else _read_labels(y)
    if labels is None:
        # scikit-learn's common checks expect the words of the second clause.
        raise InputError(
            f"{samples.name} has no labels with its rows, and the fit requires y "
            "to be passed, but the target y is None; give the class of each row."
        )
    fault = "y is not a list of classes"
    remedy = "give y as one class per row"
    with worded(fault, remedy, ValueError, TypeError), np.errstate(invalid="ignore"):
        labels = np.asarray(column_or_1d(labels, warn=True))
        if labels.shape[0] != samples.n_samples:
            raise InputError(
                f"y has {labels.shape[0]} labels for the {samples.n_samples} rows of "
                f"{samples.name}; give the class of each row."
            )
        if labels.dtype.kind in "fO":
            assert_all_finite(labels, input_name="y")
        classes = number_classes(labels)
        # Repeat the names, because scikit-learn warns if most classes have one row.
        check_classification_targets(np.repeat(classes.names, 3))
    return classes


def _read_labels(y: Any) -> np.ndarray:
    if not isinstance(y, str | os.PathLike | zarr.Array):
        return plain_values(y, "y", text=True)
    array = open_node(y)
    if not isinstance(array, zarr.Array) or array.ndim != 1:
        raise InputError(
            f"{describe(array)} is not an array with one label per row; give the path "
            "of such an array."
        )
    return read_array(array)


def check_counts(classes: Classes, n_clusters: int | None, both: bool) -> None:
    """Check that there are at least two classes, and enough rows to cluster.

    Raises
    ------
    InputError
        If there is only one class, or if a side that is clustered has fewer rows than
        ``n_clusters``.
    """
    counts = classes.counts
    if counts.size < 2:
        only = classes.names.tolist()[0]
        raise InputError(
            f"all rows are of the class {only!r}; give rows of at least 2 classes."
        )
    # Number of rows on the smaller side, for each class against all others.
    minority = np.minimum(counts, counts.sum() - counts)
    clustered = minority if both else counts.sum() - minority
    fewest = clustered.min()
    if n_clusters is not None and n_clusters > fewest:
        raise InputError(
            f"n_clusters={n_clusters} is more than the {fewest} rows of a class that "
            f"is clustered; give at most {fewest}."
        )


def check_class_weight(class_weight: Any, classes: np.ndarray) -> None:
    """Check the weights of the classes.

    Raises
    ------
    InputError
        If ``class_weight`` is not None, "balanced", or a dict from classes to positive
        numbers.
    """
    if class_weight is None:
        return
    if isinstance(class_weight, str) and class_weight == "balanced":
        return
    known = classes.tolist()
    if not isinstance(class_weight, dict):
        example = {known[0]: 2.0}
        raise InputError(
            f"class_weight={shown(class_weight)} is unknown; give None, 'balanced' or "
            f"a weight for each class, such as {example!r}."
        )
    for name, weight in class_weight.items():
        if name not in known:
            raise InputError(
                f"class_weight names the class {name!r}, which y does not have; "
                f"give classes among {known}."
            )
        is_number = isinstance(weight, numbers.Real) and not isinstance(weight, bool)
        if not is_number or not 0 < float(weight) < np.inf:
            raise InputError(
                f"class_weight of {name!r} is {weight!r}; give a positive number."
            )


def weights_of_classes(
    class_weight: dict[Any, float] | str | None,
    classes: Classes,
    is_positive: np.ndarray,
) -> np.ndarray:
    """Return, for each class, the weight of its rows in an SVM of two sides.

    With "balanced", each of the two sides has the total weight n/2.
    """
    if class_weight == "balanced":
        n_positive = classes.counts[is_positive].sum()
        n_samples = classes.counts.sum()
        of_sides = n_samples / (2 * np.array([n_samples - n_positive, n_positive]))
        return np.asarray(of_sides[is_positive.astype(np.int64)])
    weights = class_weight if isinstance(class_weight, dict) else {}
    return np.array([float(weights.get(name, 1.0)) for name in classes.names.tolist()])
