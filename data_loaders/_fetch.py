"""Load data sets as scikit-learn does: ``fetch_NAME`` returns a `Bunch`, or rows and classes."""

from __future__ import annotations

import sys
from os import PathLike
from pathlib import Path
from typing import Any

from mmcnb import InputError

from ._files import Source
from ._load import load
from ._registry import DATASETS, find_dataset, module_of

DataHome = str | PathLike[str] | None

# Height and width of the images, in pixels.
SIDES = {"mnist": 28, "usps": 16, "optdigits": 8}
FEATURE_NAMES = {
    "iris": [
        "sepal length (cm)",
        "sepal width (cm)",
        "petal length (cm)",
        "petal width (cm)",
    ],
    "pendigits": [f"{axis}_{point}" for point in range(8) for axis in "xy"],
    **{
        name: [f"pixel_{i}_{j}" for i in range(side) for j in range(side)]
        for name, side in SIDES.items()
    },
}


def fetch_adult(
    *,
    subset: str = "a9a",
    data_home: DataHome = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Any:
    """Load the UCI adult data in LIBSVM's binary form.

    Parameters
    ----------
    subset : str, default="a9a"
        "a9a" has 32,561 rows; "a1a" (1,605 rows) to "a8a" are subsets of these rows,
        and "a9a.t" has the test rows.
    data_home : str, path-like or None, default=None
        Folder of the file and of downloads. If None, the folder that MMCNB_DATA_DIR
        names is searched first, and then the user's cache folder.
    download_if_missing : bool, default=True
        Whether a missing file is downloaded.
    return_X_y : bool, default=False
        Return only ``(data, target)``.

    Returns
    -------
    sklearn.utils.Bunch
        ``data``, csr_matrix of shape (n_samples, 123) and dtype float32; ``target``,
        ndarray of shape (n_samples,) and dtype int64, +1 if the income is above 50,000
        dollars and otherwise -1; ``feature_names``, which is None because LIBSVM's file
        has no names; ``DESCR``.

    Raises
    ------
    InputError
        If the subset is unknown, or its file cannot be found or downloaded, or is not
        the published file.

    Examples
    --------
    >>> from mmcnb.datasets import fetch_adult
    >>> X, y = fetch_adult(subset="a1a", return_X_y=True)  # doctest: +SKIP
    >>> X.shape  # doctest: +SKIP
    (1605, 123)
    """
    choices = [
        name for name in DATASETS if module_of(name) == "adult" and name != "adult"
    ]
    return _fetch(
        _chosen("subset", subset, choices), data_home, download_if_missing, return_X_y
    )


def fetch_mnist(
    *,
    subset: str = "all",
    data_home: DataHome = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Any:
    """Load MNIST: 70,000 handwritten digits of 28 x 28 pixels.

    Parameters
    ----------
    subset : {"all", "train", "test"}, default="all"
        All 70,000 rows, the first 60,000 or the last 10,000.
    data_home : str, path-like or None, default=None
        Folder of the files, as in `fetch_adult`.
    download_if_missing : bool, default=True
        Whether missing files are downloaded.
    return_X_y : bool, default=False
        Return only ``(data, target)``.

    Returns
    -------
    sklearn.utils.Bunch
        ``data``, ndarray of shape (n_samples, 784) and dtype float32, from 0 (paper) to
        1 (ink); ``target``, the digits, dtype int64; ``feature_names``, such as
        "pixel_0_27"; ``DESCR``.

    Raises
    ------
    InputError
        As in `fetch_adult`.

    Examples
    --------
    >>> from mmcnb.datasets import fetch_mnist
    >>> fetch_mnist(subset="test").data.shape  # doctest: +SKIP
    (10000, 784)
    """
    return _digits("mnist", subset, {}, data_home, download_if_missing, return_X_y)


def fetch_usps(
    *,
    subset: str = "all",
    data_home: DataHome = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Any:
    """Load USPS: 9,298 handwritten digits of 16 x 16 pixels.

    Parameters
    ----------
    subset : {"all", "train", "test"}, default="all"
        All rows, the first 7,291 or the last 2,007.
    data_home : str, path-like or None, default=None
        Folder of the files, as in `fetch_adult`.
    download_if_missing : bool, default=True
        Whether missing files are downloaded.
    return_X_y : bool, default=False
        Return only ``(data, target)``.

    Returns
    -------
    sklearn.utils.Bunch
        ``data``, ndarray of shape (n_samples, 256) and dtype float32, from -1 (paper)
        to 1 (ink); ``target``, the digits, dtype int64; ``feature_names``, such as
        "pixel_0_15"; ``DESCR``.

    Raises
    ------
    InputError
        As in `fetch_adult`.

    Examples
    --------
    >>> from mmcnb.datasets import fetch_usps
    >>> fetch_usps().data.shape  # doctest: +SKIP
    (9298, 256)
    """
    return _digits("usps", subset, {}, data_home, download_if_missing, return_X_y)


def fetch_optdigits(
    *,
    subset: str = "all",
    data_home: DataHome = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Any:
    """Load UCI's optdigits: 5,620 handwritten digits as 8 x 8 counts of black pixels.

    scikit-learn's ``load_digits`` has only the test rows.

    Parameters
    ----------
    subset : {"all", "train", "test"}, default="all"
        All rows, the first 3,823 or the last 1,797.
    data_home : str, path-like or None, default=None
        Folder of the files, as in `fetch_adult`.
    download_if_missing : bool, default=True
        Whether missing files are downloaded.
    return_X_y : bool, default=False
        Return only ``(data, target)``.

    Returns
    -------
    sklearn.utils.Bunch
        ``data``, ndarray of shape (n_samples, 64) and dtype float64, from 0 to 16;
        ``target``, the digits, dtype int64; ``feature_names``, such as "pixel_0_7";
        ``DESCR``.

    Raises
    ------
    InputError
        As in `fetch_adult`.

    Examples
    --------
    >>> from mmcnb.datasets import fetch_optdigits
    >>> fetch_optdigits(subset="test").data.shape  # doctest: +SKIP
    (1797, 64)
    """
    parts = {"train": "tra", "test": "tes"}
    return _digits(
        "optdigits", subset, parts, data_home, download_if_missing, return_X_y
    )


def fetch_pendigits(
    *,
    subset: str = "all",
    data_home: DataHome = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Any:
    """Load UCI's pendigits: 10,992 handwritten digits, each as eight points on the path of the pen.

    Parameters
    ----------
    subset : {"all", "train", "test"}, default="all"
        All rows, the first 7,494 or the last 3,498.
    data_home : str, path-like or None, default=None
        Folder of the files, as in `fetch_adult`.
    download_if_missing : bool, default=True
        Whether missing files are downloaded.
    return_X_y : bool, default=False
        Return only ``(data, target)``.

    Returns
    -------
    sklearn.utils.Bunch
        ``data``, ndarray of shape (n_samples, 16) and dtype float64, from 0 to 100;
        ``target``, the digits, dtype int64; ``feature_names``, "x_0", "y_0" to "y_7";
        ``DESCR``.

    Raises
    ------
    InputError
        As in `fetch_adult`.

    Examples
    --------
    >>> from mmcnb.datasets import fetch_pendigits
    >>> fetch_pendigits(subset="test").data.shape  # doctest: +SKIP
    (3498, 16)
    """
    return _digits("pendigits", subset, {}, data_home, download_if_missing, return_X_y)


def fetch_uci(
    name: str,
    *,
    data_home: DataHome = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Any:
    """Load one of the smaller sets of the UCI repository.

    Parameters
    ----------
    name : str
        Name of the data set, such as "ionosphere", "segment", "wdbc" or "magic";
        ``python -m mmcnb.datasets list`` shows all names.
    data_home : str, path-like or None, default=None
        Folder of the files, as in `fetch_adult`.
    download_if_missing : bool, default=True
        Whether missing files are downloaded.
    return_X_y : bool, default=False
        Return only ``(data, target)``.

    Returns
    -------
    sklearn.utils.Bunch
        ``data``, ndarray of shape (n_samples, n_features) and dtype float64, not
        scaled; ``target``, ndarray of shape (n_samples,) and dtype int64;
        ``feature_names``, a list or None; ``DESCR``.

    Raises
    ------
    InputError
        As in `fetch_adult`.

    Examples
    --------
    >>> from mmcnb.datasets import fetch_uci
    >>> fetch_uci("ionosphere").data.shape  # doctest: +SKIP
    (351, 34)
    """
    choices = [
        one for one in DATASETS if module_of(one) in ("uci", "uci_copies", "ringnorm")
    ]
    return _fetch(
        _chosen("name", name, choices), data_home, download_if_missing, return_X_y
    )


def _digits(name: str, subset: str, parts: dict[str, str], *how: Any) -> Any:
    """Load a set of digits, or the part of it that has the name ``parts[subset]`` in the registry."""
    part = _chosen("subset", subset, ["all", "train", "test"])
    return _fetch(name if part == "all" else f"{name}-{parts.get(part, part)}", *how)


def _chosen(parameter: str, value: str, choices: list[str]) -> str:
    if value not in choices:
        raise InputError(
            f"{parameter}={value!r} is unknown; choose one of {', '.join(choices)}."
        )
    return value


def _fetch(name: str, data_home: DataHome, download: bool, return_X_y: bool) -> Any:
    from sklearn.utils import Bunch

    source = Source(download=download)
    if data_home is not None:
        Path(data_home).mkdir(parents=True, exist_ok=True)
        source = Source(data_home, cache_dir=data_home, download=download)
    X, y = load(name, source=source)
    if return_X_y:
        return X, y
    names = FEATURE_NAMES.get(name.partition("-")[0])
    return Bunch(data=X, target=y, feature_names=names, DESCR=_description(name))


def _description(name: str) -> str:
    """Describe a data set by its facts and the docstring of its module."""
    facts = find_dataset(name)
    told = sys.modules[f"{__package__}.{module_of(name)}"].__doc__ or ""
    # For the smaller sets, the docstring of the reader describes the columns and
    # classes.
    read = facts.read.__doc__ or ""
    classes = ", ".join(
        f"{label}: {count}" for label, count in facts.class_counts.items()
    )
    return (
        f"{name}: {facts.n_samples} rows, {facts.n_features} features; rows of each class: {classes}.\n\n"
        f"{told.strip()}\n\n{'' if 'Parameters' in read else read.strip()}\n\nFrom {facts.page}\n"
    )
