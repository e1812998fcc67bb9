"""Eight data sets with few rows and many features, from ``.mat`` files of the scikit-feature repository.

``coil20`` (20 objects, each from 72 sides), ``yale`` (15 faces) and ``pixraw10p`` (10
faces) are images. ``glioma``, ``lymphoma``, ``nci9``, ``allaml`` and ``leukemia`` are
gene expressions; ``allaml`` and ``leukemia`` are from the same 72 patients. Pixels that
are stored as bytes are divided by 255; other features and the classes are unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO

import numpy as np
from scipy.io import loadmat

from ._dataset import Block, DataSet, File

PAGE = "https://jundongl.github.io/scikit-feature/datasets.html"
# The address names a commit, so that the files cannot change.
_COMMIT = "48cffad4e88ff4b9d2f1c7baffb314d1b3303792"
_URL = f"https://raw.githubusercontent.com/jundongl/scikit-feature/{_COMMIT}/skfeature/data"


def read_mat(content: bytes) -> Iterator[Block]:
    """Read the rows ``X`` and the classes ``Y`` from a MATLAB file.

    Parameters
    ----------
    content : bytes
        The file.

    Yields
    ------
    X : ndarray of shape (n_samples, n_features)
        The rows. Bytes become float32 from 0 to 1; other dtypes are unchanged.
    y : ndarray of shape (n_samples,), dtype int64
        The classes.

    Examples
    --------
    >>> from io import BytesIO
    >>> from scipy.io import savemat
    >>> from mmcnb.datasets.scikit_feature import read_mat
    >>> file = BytesIO()
    >>> savemat(file, {"X": [[-2, 0], [1, 2]], "Y": [[1], [2]]})
    >>> [(X, y)] = read_mat(file.getvalue())
    >>> X.tolist(), y.tolist()
    ([[-2, 0], [1, 2]], [1, 2])
    """
    arrays = loadmat(BytesIO(content))
    X = np.ascontiguousarray(arrays["X"])  # MATLAB writes column by column
    if X.dtype == np.uint8:
        X = X / np.float32(255)
    yield X, arrays["Y"].ravel().astype(np.int64)


def _mat(
    name: str,
    n_features: int,
    counts: dict[int, int],
    dtype: str,
    path: str,
    sha256: str,
) -> DataSet:
    file = File(path, f"{_URL}/{path.rpartition('/')[2]}", sha256)
    return DataSet(name, n_features, counts, (file,), PAGE, read_mat, dtype)


# fmt: off
DATASETS = [
    _mat("coil20", 1024, dict.fromkeys(range(1, 21), 72), "float64", "coil20/COIL20.mat",
         "4595ebdda07f47b0eb014fcfaddc22b452f9aed9c1d9261a0d5bc336c1ee1344"),
    _mat("yale", 1024, dict.fromkeys(range(1, 16), 11), "float32", "images/Yale.mat",
         "cccd29abd2c520dd5cc8ff7645b422c2bdadd59406a6b6a0239143d9d44afcf3"),
    _mat("pixraw10p", 10000, dict.fromkeys(range(1, 11), 10), "float32", "images/pixraw10P.mat",
         "aa4b474244ae847dc2efdc868c0ff58fc3748a830c2ffdf760a1697cf72088f8"),
    _mat("glioma", 4434, {1: 14, 2: 7, 3: 14, 4: 15}, "float64", "expression/GLIOMA.mat",
         "c31cd32edd770c7a102729839e670e588bc959a591e0eae5a0676c9ca11d4c4f"),
    _mat("lymphoma", 4026, dict(enumerate((46, 10, 9, 11, 6, 6, 4, 2, 2), 1)), "float32",
         "expression/lymphoma.mat", "bd834ed911d47ecf2e07625ed77617d514d89ee398fa2e7a787230f7cf5243f8"),
    _mat("nci9", 9712, dict(enumerate((9, 9, 8, 5, 7, 6, 8, 6, 2), 1)), "float32",
         "expression/nci9.mat", "e336aa43eaf3103803252604375a89141043994a54f93222f7ccc12b5b910789"),
    _mat("allaml", 7129, {1: 47, 2: 25}, "float64", "expression/ALLAML.mat",
         "068afe0fe1021932e1e7d801294c267de8aeaa9d41899acfac024e72b0d44c1e"),
    _mat("leukemia", 7070, {-1: 47, 1: 25}, "float32", "expression/leukemia.mat",
         "eb92382fb77c968864cb0a92a2c77acde7f88ba7fe5fd5a64b98184e3a05269d"),
]
# fmt: on
