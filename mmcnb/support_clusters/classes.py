"""The class of each row, from an array or a store, and the weights of classes."""

import numbers
import os
from typing import Any, NamedTuple

import numpy as np
import zarr
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets

from mmcnb.errors import InputError, shown, worded
from mmcnb.samples import Samples
from mmcnb.samples.arrays import plain_values
from mmcnb.samples.zarr import describe, open_node
from mmcnb.stores.labels import open_class_labels, read_array


class Side(NamedTuple):
    """The rows of a class against the others: the smaller side is the positive one.

    Attributes
    ----------
    number : int
        Number of the class whose decision value is wanted.
    sign : int
        +1 where the class itself is the positive side, -1 where the others are.
    name : object
        The class that the history names.
    """

    number: int
    sign: int
    name: Any


def sides_of(names: list[Any], counts: np.ndarray) -> list[Side]:
    """Return the sides of each SVM: one for two classes, otherwise one a class."""
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


def read_classes(y: Any, X: Any, samples: Samples) -> np.ndarray:
    """Read the class of each row.

    Parameters
    ----------
    y : array, Zarr array, path of one, Dask array or None
        The classes; None takes those beside the rows of a store.
    X : object
        The rows, as they were given.
    samples : Samples
        The rows, opened.

    Returns
    -------
    ndarray of shape (n_samples,)
        Numbers or text.

    Raises
    ------
    InputError
        If there is none, not one a row, or a class is a measured quantity.
    """
    labels = open_class_labels(X) if y is None else _read_labels(y)
    if labels is None:
        # The second clause is what scikit-learn's checks ask for.
        raise InputError(
            f"{samples.name} has no labels beside its rows, and the fit requires y "
            "to be passed, but the target y is None; give the class of each row."
        )
    fault = "y is no list of classes"
    remedy = "give y as one class a row"
    with worded(fault, remedy, ValueError, TypeError), np.errstate(invalid="ignore"):
        labels = np.asarray(column_or_1d(labels, warn=True))
        if labels.shape[0] != samples.n_samples:
            raise InputError(
                f"y has {labels.shape[0]} labels for the {samples.n_samples} rows of "
                f"{samples.name}; give the class of each row."
            )
        if labels.dtype.kind in "fO":
            assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
    return labels


def _read_labels(y: Any) -> np.ndarray:
    if not isinstance(y, str | os.PathLike | zarr.Array):
        return plain_values(y, "y", text=True)
    array = open_node(y)
    if not isinstance(array, zarr.Array) or array.ndim != 1:
        raise InputError(
            f"{describe(array)} is no array of one label a row; give the path of one."
        )
    return read_array(array)


def check_counts(
    classes: np.ndarray, counts: np.ndarray, n_clusters: int | None, both: bool
) -> None:
    """Check that there are classes, and rows enough to cluster.

    Raises
    ------
    InputError
        If there is one class, or one that is clustered has fewer rows than clusters.
    """
    if classes.size < 2:
        only = classes.tolist()[0]
        raise InputError(
            f"all rows are of the class {only!r}; give rows of at least 2 classes."
        )
    minority = np.minimum(counts, counts.sum() - counts)  # of each class and the rest
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
        If they are neither None, "balanced", nor a positive number for some of the
        classes.
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
                f"it has {known}."
            )
        is_number = isinstance(weight, numbers.Real) and not isinstance(weight, bool)
        if not is_number or not 0 < float(weight) < np.inf:
            raise InputError(
                f"class_weight of {name!r} is {weight!r}; give a positive number."
            )


def weight_of_rows(
    class_weight: dict[Any, float] | str | None,
    classes: np.ndarray,
    codes: np.ndarray,
    positive: np.ndarray,
) -> np.ndarray:
    """Return the weight of each row in the SVM of some rows against the rest.

    "balanced" gives both sides the same weight in all, n/2.
    """
    if class_weight == "balanced":
        return np.asarray(compute_sample_weight("balanced", positive))
    weights = class_weight if isinstance(class_weight, dict) else {}
    of_classes = [float(weights.get(name, 1.0)) for name in classes.tolist()]
    return np.array(of_classes)[codes]
