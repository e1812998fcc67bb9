"""Every data set by its name."""

from __future__ import annotations

import re

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
    *(adult, mnist, optdigits, ringnorm, uci, uci_copies, usps),
    *(svmguide1, scikit_feature, texts, made),
)
DATASETS = {dataset.name: dataset for module in _MODULES for dataset in module.DATASETS}
SYNTHETIC = ("rings", "moons", "blobs")
_PAIR = re.compile(r"(?P<name>.+)-(?P<first>\d)v(?P<second>\d)")
PAPER_PAIRS = ("mnist-1v7", "mnist-2v7", "mnist-3v8", "mnist-8v9")


def module_of(name: str) -> str:
    """The module that has a data set of the registry.

    Examples
    --------
    >>> from mmcnb.datasets._registry import module_of
    >>> module_of("a9a.t")
    'adult'
    """
    home = next(module for module in _MODULES if any(one.name == name for one in module.DATASETS))
    return home.__name__.rpartition(".")[2]


def find_dataset(name: str) -> DataSet:
    """Find a data set, or two digits of one.

    Parameters
    ----------
    name : str
        A name of the registry, or that of a set of ten digits followed by two of them: ``mnist-1v7``.

    Returns
    -------
    DataSet
        Its facts and how it is read.

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
    if pair and set(getattr(DATASETS.get(pair["name"]), "class_counts", ())) == set(range(10)):
        first, second = int(pair["first"]), int(pair["second"])
        if first != second:
            return DATASETS[pair["name"]].pair(first, second)
    raise InputError(
        f"there is no data set called {name!r}; choose one of {', '.join((*DATASETS, *SYNTHETIC))}, or two "
        "digits such as mnist-1v7 or optdigits-3v8."
    )
