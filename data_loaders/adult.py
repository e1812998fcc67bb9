"""The UCI adult data in LIBSVM's form: the nested sets a1a to a9a, and the test rows a9a.t.

The 14 attributes of a census were converted to 123 binary features: quantiles of the
continuous attributes, and one feature for each value of the other attributes. On
average, 13.87 features of a row are 1; all others, including missing values, are 0. The
class is +1 if the income is above 50,000 dollars, and otherwise -1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO

from sklearn.datasets import load_svmlight_file

from ._dataset import Block, DataSet, File

N_FEATURES = 123
PAGE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary.html"
_URL = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary"


def read_libsvm(content: bytes) -> Iterator[Block]:
    """Read a file of the adult data.

    Parameters
    ----------
    content : bytes
        LIBSVM text with column numbers from 1.

    Yields
    ------
    X : csr_matrix of shape (n_samples, 123), dtype float32
        The binary features.
    y : ndarray of shape (n_samples,)
        -1 and +1.

    Examples
    --------
    >>> from mmcnb.datasets.adult import read_libsvm
    >>> [(X, y)] = read_libsvm(b"-1 3:1 11:1 \\n+1 5:1 \\n")
    >>> X.shape, X.indices.tolist(), y.tolist()
    ((2, 123), [2, 10, 4], [-1, 1])
    """
    X, y = load_svmlight_file(
        BytesIO(content), n_features=N_FEATURES, dtype="float32", zero_based=False
    )
    yield X, y.astype("int64")


def _adult(name: str, negative: int, positive: int, sha256: str) -> DataSet:
    file = File(f"adult/{name}", f"{_URL}/{name}", sha256)
    counts = {-1: negative, 1: positive}
    return DataSet(
        name,
        N_FEATURES,
        counts,
        (file,),
        PAGE,
        read_libsvm,
        dtype="float32",
        layout="csr",
    )


_NAMED = [
    _adult(
        "a1a",
        1210,
        395,
        "eb54c45f1bdb51286f803dd092eb8202b44637a858fc6c4e533a2d64a0d94b4e",
    ),
    _adult(
        "a2a",
        1693,
        572,
        "535782f1be62e60938d8accb1573043542b3ac11265522927574dcbb28360a2f",
    ),
    _adult(
        "a3a",
        2412,
        773,
        "2d513572f103d25e84bebe4b9f2f52ee9445764b5a393caff7db9c482cfc1ee4",
    ),
    _adult(
        "a4a",
        3593,
        1188,
        "694d5abff492bdb8ce9749ddf3bf5af1c6f1f0ad6e3a0ae7818000d4d4c4847b",
    ),
    _adult(
        "a5a",
        4845,
        1569,
        "5cb3a6603de0a0eb43afcdd45b1820c71ee7f20da1c09f054696bb71cbc45ad8",
    ),
    _adult(
        "a6a",
        8528,
        2692,
        "6023becedbd392fdc6a62ad94b60c9363149370d4c57ef13949fcc765842a031",
    ),
    _adult(
        "a7a",
        12182,
        3918,
        "d383cf150d4d9f9097b91cc88022cd0ac473c3a72da3f33b4c17801a4bfccdc6",
    ),
    _adult(
        "a8a",
        17190,
        5506,
        "d08a37b3fadd4bd3c8b3fc30bdc93b54d7c0f371265c90cbfb931a7efe97cd28",
    ),
    _adult(
        "a9a",
        24720,
        7841,
        "f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906",
    ),
    _adult(
        "a9a.t",
        12435,
        3846,
        "1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9",
    ),
]
DATASETS = [replace(_NAMED[8], name="adult"), *_NAMED]
