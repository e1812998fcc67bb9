"""Constraints on the values of parameters."""

import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mmcnb.errors import InputError, shown

# Largest magnitude of a parameter. Its inverse is the smallest nonzero magnitude. The
# squares of both are still in the range of float64.
LARGEST_NUMBER = 1e100


class Constraint(Protocol):
    """A constraint on the values of a parameter."""

    def check(self, name: str, value: Any) -> None:
        """Raise InputError if ``value`` violates the constraint.

        ``name`` is the name of the parameter in the message.
        """


@dataclass(frozen=True)
class Interval:
    """Constraint to finite real numbers in a range, which excludes NaN and booleans.

    Parameters
    ----------
    low : float
        Lower end of the range.
    high : float, default=inf
        Upper end of the range. If it is infinite, integers are limited to 2**31 - 1 and
        other numbers to 1e100.
    open_low, open_high : bool, default=False
        Whether to exclude the lower or the upper end of the range.
    integer : bool, default=False
        Whether the value must be an integer.
    optional : bool, default=False
        Whether the value may be None.
    """

    low: float
    high: float = np.inf
    open_low: bool = False
    open_high: bool = False
    integer: bool = False
    optional: bool = False

    def check(self, name: str, value: Any) -> None:
        """Raise InputError if ``value`` is not a number in the range."""
        if value is None and self.optional:
            return
        number: Any = value.item() if isinstance(value, np.generic) else value
        size: Any = abs(number) if isinstance(number, numbers.Real) else 0
        if self._is_inside(value, size):
            return
        fault = "is out of range"
        what = "a whole number" if self.integer else "a number"
        if self.integer and isinstance(number, float):
            fault = "is not an integer"
            what = "an integer"
        above = f"above {self.low:g}" if self.open_low else f"of at least {self.low:g}"
        if 0 < size < 1 / LARGEST_NUMBER:
            above = f"of at least {1 / LARGEST_NUMBER:g}"
        below = ""
        if self.high < np.inf or size > self._most:
            end = "below" if self.open_high else "at most"
            below = f" and {end} {self._most:g}"
        raise InputError(f"{name}={shown(value)} {fault}; give {what} {above}{below}.")

    @property
    def _most(self) -> float:
        """Largest magnitude that a value may have."""
        if self.integer and self.high == np.inf:
            return 2**31 - 1
        return min(self.high, LARGEST_NUMBER)

    def _is_inside(self, value: Any, size: Any) -> bool:
        """Return whether ``value``, with the magnitude ``size``, is in the range."""
        number_type = numbers.Integral if self.integer else numbers.Real
        if isinstance(value, bool | np.timedelta64):
            return False
        if not isinstance(value, number_type):
            return False
        if size != 0 and not 1 / LARGEST_NUMBER <= size <= self._most:
            return False
        number = float(value)
        is_above = number > self.low or (number == self.low and not self.open_low)
        is_below = number < self.high or (number == self.high and not self.open_high)
        return is_above and is_below


@dataclass(frozen=True)
class Choice:
    """Constraint to one of several values, such as strings, booleans or None."""

    choices: tuple[Any, ...]

    def check(self, name: str, value: Any) -> None:
        """Raise InputError if ``value`` is not one of the choices."""
        named = isinstance(value, str) and value in self.choices
        if not named and not any(value is choice for choice in self.choices):
            known = ", ".join(repr(choice) for choice in self.choices)
            raise InputError(
                f"{name}={shown(value)} is unknown; choose one of {known}."
            )


@dataclass(frozen=True)
class IntervalOr:
    """Constraint to a number in a range or one of several strings."""

    number: Interval
    names: tuple[str, ...]
    optional: bool = False

    def check(self, name: str, value: Any) -> None:
        """Raise InputError if ``value`` is neither in the range nor in ``names``."""
        if value is None and self.optional:
            return
        if isinstance(value, numbers.Real):
            self.number.check(name, value)
        elif not isinstance(value, str) or value not in self.names:
            known = ", ".join(repr(choice) for choice in self.names)
            if len(self.names) > 1:
                known = f"one of {known}"
            raise InputError(
                f"{name}={shown(value)} is unknown; give a positive number or {known}."
            )


@dataclass(frozen=True)
class Parsed:
    """Constraint to values for which a function does not raise InputError."""

    parse: Callable[[Any], Any]
    optional: bool = True

    def check(self, name: str, value: Any) -> None:
        """Raise InputError if the function raises InputError for ``value``."""
        if value is not None or not self.optional:
            self.parse(value)
