"""Rows of a fit whose values fill the missing cells of similar rows."""

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from mmcnb.errors import InputError


@dataclass(frozen=True, eq=False)
class Donors:
    """Rows of a fit from which missing cells are filled, and scales of their columns.

    Attributes
    ----------
    rows : ndarray of shape (m, c), float64
        Values of the table's feature columns: numbers or category codes. Missing cells
        are NaN.
    center, divisor, unit : ndarray of shape (c,), float64
        Distances are computed from (x - center) / divisor. If the unit of a column is
        positive, x is first replaced by sign(x) log(1 + abs(x) / unit).
    steps : ndarray of shape (c,), float64
        Squared distance between two different categories; 0 for numeric columns.
    """

    rows: np.ndarray
    center: np.ndarray
    divisor: np.ndarray
    unit: np.ndarray
    steps: np.ndarray

    def of_columns(self, columns: np.ndarray) -> "Donors":
        """Return the donors restricted to the given columns, in the given order."""
        return Donors(
            *(np.take(getattr(self, field.name), columns, -1) for field in fields(self))
        )

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the donors as a dict of finite arrays, to be saved in a model file."""
        is_gap = np.isnan(self.rows)
        arrays = {
            f"donor_{field.name}": getattr(self, field.name) for field in fields(self)
        }
        arrays["donor_rows"] = np.where(is_gap, 0.0, self.rows)
        arrays["donor_gaps"] = is_gap.astype(np.int32)
        return arrays

    @classmethod
    def restore(cls, arrays: Mapping[str, np.ndarray]) -> "Donors | None":
        """Restore donors from a result of `arrays`, or return None if it has no donors.

        Raises
        ------
        InputError
            If an array is missing, or has the wrong shape.
        """
        if "donor_rows" not in arrays:
            return None
        names = [*(field.name for field in fields(cls)), "gaps"]
        missing = [name for name in names if f"donor_{name}" not in arrays]
        if missing:
            raise InputError(f"donor_{missing[0]} is missing")
        rows, *scales, is_gap = (arrays[f"donor_{name}"] for name in names)
        if is_gap.shape != rows.shape or any(
            scale.shape != rows.shape[1:] for scale in scales
        ):
            raise InputError("donor_rows and the scales of its columns differ in shape")
        return cls(np.where(is_gap != 0, np.nan, rows), *scales)
