"""Convert a column of class labels to integers."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from mmcnb.tables.arrow import TEXT

WHOLE_LABEL = r"(?i)^[-+]?\d+(\.0*)?(e\+?0+)?$"


class ClassLabels:
    """Class labels of a column: integers, or texts numbered in order of appearance.

    Attributes
    ----------
    names : list of str or None
        Names of the classes read so far; None if the labels are integers.
    """

    names: list[str] | None = None
    _has_begun = False

    def numbers(self, values: pa.Array) -> tuple[np.ndarray, int]:
        """Convert the labels of the next rows to integers.

        The first label of the column decides whether all labels are read as integers.

        Parameters
        ----------
        values : pyarrow.Array
            Labels as integers or texts.

        Returns
        -------
        labels : ndarray of int64
            The integers, or the indices of the texts in `names`.
        first_wrong : int
            Index in ``values`` of the first label that is not an integer, if labels
            are read as integers; -1 if there is no such label.
        """
        if types.is_integer(values.type):
            return np.array(values, np.int64), -1
        is_whole = pc.match_substring_regex(values, WHOLE_LABEL)
        if not self._has_begun and len(values):
            self._has_begun = True
            if not is_whole[0].as_py():
                self.names = []
        if self.names is not None:
            distinct = pc.unique(values).to_pylist()
            self.names = list(dict.fromkeys(self.names + distinct))
            numbers = pc.index_in(values, pa.array(self.names, TEXT))
            return np.array(numbers, np.int64), -1
        whole = pc.if_else(is_whole, values, "0")
        first_wrong = pc.index(is_whole, False)
        return _whole_labels(whole), first_wrong.as_py()


def _whole_labels(texts: pa.Array) -> np.ndarray:
    """Convert texts such as 3, +3, 3.0 and 3e0 to integers."""
    digits = pc.replace_substring_regex(texts, r"^\+|(\.0*)?([eE].*)?$", "")
    return np.array(digits.cast(pa.int64()))
