"""Rows of a fit from which the gaps of other rows are filled."""

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from mmcnb.errors import InputError


@dataclass(frozen=True, eq=False)
class Donors:
    """Rows of a fit from which gaps are filled, and how their columns are compared.

    Attributes
    ----------
    rows : ndarray of shape (m, c), float64
        Numbers, or numbers of categories, of the columns of the table that are
        features. Gaps are NaN.
    center, divisor, unit : ndarray of shape (c,), float64
        A number x is compared as (x - center) / divisor, or with log(1 + abs(x) / unit)
        and its sign in place of x if the unit is positive.
    steps : ndarray of shape (c,), float64
        Squared distance of two categories; 0 in columns of numbers.
    """

    rows: np.ndarray
    center: np.ndarray
    divisor: np.ndarray
    unit: np.ndarray
    steps: np.ndarray

    def of_columns(self, columns: np.ndarray) -> "Donors":
        """Return the donors with their columns in another order."""
        return Donors(
            *(np.take(getattr(self, field.name), columns, -1) for field in fields(self))
        )

    def arrays(self) -> dict[str, np.ndarray]:
        """Return arrays of finite numbers, by name, for a model file."""
        is_gap = np.isnan(self.rows)
        arrays = {
            f"donor_{field.name}": getattr(self, field.name) for field in fields(self)
        }
        arrays["donor_rows"] = np.where(is_gap, 0.0, self.rows)
        arrays["donor_gaps"] = is_gap.astype(np.int32)
        return arrays

    @classmethod
    def restore(cls, arrays: Mapping[str, np.ndarray]) -> "Donors | None":
        """Return the donors of a result of `arrays`; None if there are none.

        Raises
        ------
        InputError
            An array is missing, or is of another shape.
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
            raise InputError(
                "donor_rows is of another shape than the scales of columns"
            )
        return cls(np.where(is_gap != 0, np.nan, rows), *scales)
