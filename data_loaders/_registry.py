"""Registry of all data sets by name."""

from __future__ import annotations

import re
from dataclasses import replace
from string import ascii_uppercase, digits

from mmcnb import InputError

from . import (
    adult,
    made,
    mnist,
    optdigits,
    ringnorm,
    scikit_feature,
    svmguide1,
    texts,
    uci,
    uci_copies,
    usps,
)
from ._dataset import DataSet

_MODULES = (
    adult,
    mnist,
    optdigits,
    ringnorm,
    uci,
    uci_copies,
    usps,
    svmguide1,
    scikit_feature,
    texts,
    made,
)
DATASETS = {dataset.name: dataset for module in _MODULES for dataset in module.DATASETS}
SYNTHETIC = ("rings", "moons", "blobs")
_PAIR = re.compile(r"(?P<name>.+)-(?P<first>[0-9A-Z])v(?P<second>[0-9A-Z])")
PAPER_PAIRS = ("mnist-1v7", "mnist-2v7", "mnist-3v8", "mnist-8v9", "letter-AvB")


def module_of(name: str) -> str:
    """Return the name of the module that defines a data set.

    Examples
    --------
    >>> from mmcnb.datasets._registry import module_of
    >>> module_of("a9a.t")
    'adult'
    """
    home = next(
        module
        for module in _MODULES
        if any(one.name == name for one in module.DATASETS)
    )
    return home.__name__.rpartition(".")[2]


def find_dataset(name: str) -> DataSet:
    """Find a data set, or the data set of two of its digits or capitals.

    Parameters
    ----------
    name : str
        A name in the registry, or the name of a set of digits or capitals followed by
        two of them, such as ``mnist-1v7`` or ``letter-AvB``.

    Returns
    -------
    DataSet
        The facts of the data set, and the function that reads it.

    Raises
    ------
    InputError
        If there is no such data set.

    Examples
    --------
    >>> from mmcnb.datasets._registry import find_dataset
    >>> find_dataset("mnist-1v7").class_counts
    {1: 7877, 7: 7293}
    """
    if name in DATASETS:
        return DATASETS[name]
    pair = _PAIR.fullmatch(name)
    if pair and pair["name"] in DATASETS:
        whole = DATASETS[pair["name"]]
        places = [*map(_symbols_of(pair["name"]).find, pair.group(2, 3))]
        if min(places) >= 0 and places[0] != places[1]:
            return replace(whole.pair(*places), name=name)
    raise InputError(
        f"there is no data set called {name!r}; choose one of {', '.join((*DATASETS, *SYNTHETIC))}, or two "
        "digits or capitals such as mnist-1v7 or letter-AvB."
    )


def _symbols_of(name: str) -> str:
    """Return the digits or capitals that are the classes of a data set, in order; "" if the classes are neither."""
    classes = set(DATASETS[name].class_counts)
    return next(
        (
            text
            for text in (digits, ascii_uppercase)
            if classes == set(range(len(text)))
        ),
        "",
    )
