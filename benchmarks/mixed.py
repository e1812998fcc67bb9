"""Clusterers of tables with numbers and categories, with usual settings; each library is optional.

A frame is first divided into numbers and categories. Flags and texts are categories,
and dates are numbers. Numbers are standardised. For methods that do not accept gaps,
gaps in numbers are filled with the median, and gaps in categories with the most
frequent category.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_datetime64_any_dtype, is_numeric_dtype

from benchmarks.baselines.kamila import Kamila

KAMILA = "KAMILA"
PROTOTYPES = "k-prototypes"
LATENT_CLASSES = "StepMix"
FACTORS = "FAMD, k-means"
# modules, and their names for pip
PACKAGES = {
    PROTOTYPES: ("kmodes", "kmodes"),
    LATENT_CLASSES: ("stepmix", "stepmix"),
}
AXES = 10  # number of factors of the factor analysis
STARTS = 10


class Mixed(NamedTuple):
    """A table divided into numbers and categories.

    Attributes
    ----------
    numbers : ndarray of shape (n, p), float64
        Standardised; NaN for gaps.
    codes : ndarray of shape (n, q), int64
        Categories from 0; -1 for gaps.
    """

    numbers: np.ndarray
    codes: np.ndarray

    def filled(self) -> "Mixed":
        """Return the table with gaps filled by medians and most frequent categories."""
        if not len(self.codes):
            return self
        numbers = self.numbers.copy()
        for column in numbers.T:
            column[np.isnan(column)] = np.nanmedian(column)
        codes = self.codes.copy()
        for column in codes.T:
            column[column < 0] = np.bincount(column[column >= 0]).argmax()
        return Mixed(numbers, codes)


def mixed(frame: pd.DataFrame) -> Mixed:
    """Divide a frame into numbers and categories.

    Examples
    --------
    >>> import pandas as pd
    >>> from benchmarks.mixed import mixed
    >>> frame = pd.DataFrame({"plan": ["a", None, "b"], "age": [20.0, 30.0, None]})
    >>> mixed(frame)
    Mixed(numbers=array([[-1.],
           [ 1.],
           [nan]]), codes=array([[ 0],
           [-1],
           [ 1]]))
    """
    numbers = [np.empty((len(frame), 0))]
    codes = [np.empty((len(frame), 0), np.int64)]
    for name in frame:
        column = frame[name]
        if is_datetime64_any_dtype(column):
            column = (column - pd.Timestamp(0)) / pd.Timedelta(seconds=1)
        if is_numeric_dtype(column) and not is_bool_dtype(column):
            values = column.to_numpy(np.float64, na_value=np.nan)
            spread = np.nanstd(values) or 1.0
            numbers.append(((values - np.nanmean(values)) / spread)[:, None])
        else:
            codes.append(pd.factorize(column, sort=False)[0][:, None])
    return Mixed(np.hstack(numbers), np.hstack(codes))


class MixedClusterer:
    """A function that labels numbers and categories, wrapped as a clusterer of frames.

    Parameters
    ----------
    label_rows : callable
        Returns the labels of a `Mixed` table.
    takes_gaps : bool, default=False
        Whether the function accepts gaps; otherwise they are filled.
    """

    def __init__(
        self, label_rows: Callable[[Mixed], np.ndarray], takes_gaps: bool = False
    ) -> None:
        self.label_rows = label_rows
        self.takes_gaps = takes_gaps

    def fit(self, X: pd.DataFrame) -> Self:
        """Label the rows of a frame."""
        table = mixed(X)
        if not self.takes_gaps:
            table = table.filled()
        self.labels_ = np.asarray(self.label_rows(table))
        return self


def _kamila(k: int, given: Mapping[str, Any]) -> MixedClusterer:
    model = Kamila(k, **given)
    return MixedClusterer(lambda table: model.fit(table.numbers, table.codes).labels_)


def _prototypes(k: int, given: Mapping[str, Any]) -> MixedClusterer:
    """Label a table by k-prototypes, with Cao's start and the package's default weight of categories."""
    from kmodes.kprototypes import KPrototypes

    def label_rows(table: Mixed) -> np.ndarray:
        columns = np.column_stack([table.numbers, table.codes.astype(object)])
        places = range(table.numbers.shape[1], columns.shape[1])
        model = KPrototypes(int(k), init="Cao", n_init=1, **given)
        return model.fit_predict(columns, categorical=list(places))

    return MixedClusterer(label_rows)


def _latent_classes(k: int, given: Mapping[str, Any]) -> MixedClusterer:
    """Label a table by normal numbers with diagonal covariance and categories; gaps are not filled."""
    from stepmix.stepmix import StepMix
    from stepmix.utils import get_mixed_descriptor

    def label_rows(table: Mixed) -> np.ndarray:
        names = [f"number {place}" for place in range(table.numbers.shape[1])]
        frame = pd.DataFrame(table.numbers, columns=names)
        texts = [f"text {place}" for place in range(table.codes.shape[1])]
        codes = np.where(table.codes < 0, np.nan, table.codes.astype(np.float64))
        frame[texts] = codes
        ending = "_nan" if frame.isna().to_numpy().any() else ""
        kinds = {f"continuous{ending}": names, f"categorical{ending}": texts}
        kinds = {kind: columns for kind, columns in kinds.items() if columns}
        data, descriptor = get_mixed_descriptor(dataframe=frame, **kinds)
        model = StepMix(
            n_components=int(k),
            measurement=descriptor,
            n_init=STARTS,
            progress_bar=0,
            verbose=0,
            **given,
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            return model.fit(data).predict(data)

    return MixedClusterer(label_rows, takes_gaps=True)


def _factors(k: int, given: Mapping[str, Any]) -> MixedClusterer:
    """Label a table by k-means with ten starts on the first ten factors of mixed data."""
    from sklearn.cluster import KMeans
    from sklearn.decomposition import PCA

    def label_rows(table: Mixed) -> np.ndarray:
        columns = factor_columns(table)
        n_axes = min(AXES, *columns.shape)
        axes = PCA(n_axes, random_state=0).fit_transform(columns)
        return KMeans(k, n_init=STARTS, **given).fit_predict(axes)

    return MixedClusterer(label_rows)


def factor_columns(table: Mixed) -> np.ndarray:
    """Return the columns whose principal axes are the factors of mixed data.

    As in Pagès (2004), numbers have variance 1, and the 0/1 column of a category is
    divided by the square root of the share of the category.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.mixed import Mixed, factor_columns
    >>> codes = np.array([[0], [1], [1], [1]])
    >>> factor_columns(Mixed(np.empty((4, 0)), codes))[0].tolist()
    [2.0, 0.0]
    """
    columns = [table.numbers]
    for column in table.codes.T:
        is_category = np.eye(column.max() + 1)[column]
        is_category = is_category[:, is_category.any(axis=0)]
        columns.append(is_category / np.sqrt(is_category.mean(axis=0)))
    return np.hstack(columns)


METHODS: dict[str, Callable[[int, Mapping[str, Any]], Any]] = {
    KAMILA: _kamila,
    PROTOTYPES: _prototypes,
    LATENT_CLASSES: _latent_classes,
    FACTORS: _factors,
}
