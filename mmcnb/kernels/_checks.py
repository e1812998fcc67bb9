"""Declare the arguments of public routines, and check calls against the declaration.

A routine is decorated with ``takes(X=Array("(rows, d)", FLOATS), gamma=Number(least=0),
...)``. A name in a shape stands for a size, which is set by the first argument whose
shape contains this name. All shapes are checked before any values, so a range may refer
to a size that a later argument sets.
"""

import functools
import inspect
import math
import numbers
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mmcnb.errors import InputError, shown

FLOATS = "float32 or float64"
INTEGERS = "int32 or int64"
MAY_BE_EMPTY = {"flips", "rows", "stored"}
AXES = {1: ("values",), 2: ("rows", "columns"), 3: ("matrices", "rows", "columns")}
LARGEST = 2**63 - 1
RAISES = """Raises
------
InputError
    If an array does not have the stated shape and dtype or is not C-ordered, or if a
    value is out of range.

"""

# For each name in a shape, the size and the name of the argument that set the size.
Sizes = dict[str, tuple[int, str]]
Arguments = dict[str, Any]  # the arguments of a call, by name


@dataclass(frozen=True)
class Array:
    """A C-ordered array, possibly with bounds on its values.

    Parameters
    ----------
    shape : str
        Shape in the notation of docstrings, for instance "(rows, d)". Each size is a
        name, a name with "+ 1", or a number.
    dtype : str
        Allowed dtypes, separated by "or".
    least : int or str, optional
        Lower bound of the values: a number, or the name of an argument, which is an
        array of the same shape.
    below : str, optional
        Name of a size. All values must be less than this size.
    between : str, optional
        Name of an argument, such as ``indptr``, whose first and last values are the
        start and end of the part that the routine reads. Only this part is checked.
    written : bool, default=False
        Whether the routine writes to the array.
    """

    shape: str
    dtype: str
    least: int | str | None = None
    below: str | None = None
    between: str | None = None
    written: bool = False

    @cached_property
    def axes(self) -> list[tuple[str, int]]:
        """The name of each size in the shape, and the number added to this size."""
        sizes = re.findall(r"(\w+)(?: \+ (\d+))?", self.shape)
        return [(name, int(added or 0)) for name, added in sizes]

    @cached_property
    def dtypes(self) -> list[np.dtype]:
        return [np.dtype(name) for name in self.dtype.split(" or ")]

    @property
    def bounds(self) -> str:
        if self.below is not None:
            return f"in [{self.least}, {self.below})"
        if self.least is None:
            return ""
        return f"at least {self.least}"

    def fit(self, name: str, value: object, sizes: Sizes) -> np.ndarray:
        """Check type, dtype, memory order and shape; return the array."""
        if not isinstance(value, np.ndarray) or np.ma.isMaskedArray(value):
            kind = type(value).__name__
            raise InputError(
                f"{name} is of type {kind}; give a NumPy array of shape {self.shape}."
            )
        if value.dtype not in self.dtypes:
            cast = f"{name}.astype(np.{self.dtypes[-1]})"
            raise InputError(
                f"{name} is of dtype {value.dtype} and not {self.dtype}; give {cast}."
            )
        if value.ndim != len(self.axes):
            raise InputError(
                f"{name} has {value.ndim} dimensions; give it the shape {self.shape}."
            )
        flags = value.flags
        if not (flags.c_contiguous and flags.aligned):
            remedy = f'np.require({name}, requirements="CA")'
            if self.written:
                remedy = "one made by np.empty"
            raise InputError(
                f"{name} is not an aligned array in C order; give {remedy}."
            )
        if self.written and not flags.writeable:
            raise InputError(
                f"{name} is read-only, but the routine writes to it; "
                "give a writeable array."
            )
        for k, size in enumerate(value.shape):
            remedy = _agree(name, self.axes[k], size, sizes)
            if remedy:
                raise InputError(
                    f"{name} of shape {self.shape} has {size} {AXES[value.ndim][k]}; "
                    f"{remedy}."
                )
        return value

    def check(
        self, name: str, value: np.ndarray, sizes: Sizes, arguments: Arguments
    ) -> None:
        """Check the values against their bounds."""
        if self.least is None:
            return
        first = 0
        if self.between is not None:
            starts = arguments[self.between]
            first = max(int(starts[0]), 0)
            last = int(starts[-1])
            value = value[first:last]
        least = self.least
        if isinstance(least, str):
            least = arguments[least]
        inside = value >= least
        needed = self.bounds
        if self.below is not None:
            below = sizes[self.below][0]
            inside &= value < below
            needed = f"{self.bounds}, with {self.below}={below}"
        if not inside.all():
            raise InputError(
                f"{_first(name, value, ~inside, first)}; give values {needed}."
            )


@dataclass(frozen=True)
class FromZero(Array):
    """An array whose values are at least 0, such as weights or row indices."""

    least: int | str | None = 0


class Rows(Array):
    """A block of rows: an array, or an object with CSR rows.

    CSR rows have the attributes ``data``, ``indices`` and ``indptr``.
    """

    def of_csr(
        self, name: str, block: Any, sizes: Sizes
    ) -> tuple[dict[str, Array], tuple[np.ndarray, ...]]:
        """Return the declarations of the three arrays of CSR rows, and the arrays."""
        columns, _ = self.axes[1]
        n_features = getattr(block, "n_features", 0) or block.shape[1]
        sizes[columns] = n_features, name
        kinds = {
            "data": Array("(stored,)", FLOATS),
            "indices": FromZero("(stored,)", INTEGERS, below=columns, between="indptr"),
            "indptr": Starts("(rows + 1,)", INTEGERS, below="stored"),
        }
        return kinds, (block.data, block.indices, block.indptr)


class Signs(Array):
    """An array of labels -1 and +1."""

    bounds = "-1 or +1"

    def check(
        self, name: str, value: np.ndarray, sizes: Sizes, arguments: Arguments
    ) -> None:
        wrong = np.abs(value) != 1
        if wrong.any():
            raise InputError(
                f"{_first(name, value, wrong)}; give labels {self.bounds}."
            )


class Starts(Array):
    """The start of each part of another array, followed by the end of the last part."""

    @property
    def bounds(self) -> str:
        return f"rising from at least 0 to at most {self.below}"

    def check(
        self, name: str, value: np.ndarray, sizes: Sizes, arguments: Arguments
    ) -> None:
        size = sizes[str(self.below)][0]
        if value[0] < 0 or value[-1] > size or (value[1:] < value[:-1]).any():
            raise InputError(
                f"{name} goes from {value[0]} to {value[-1]}; "
                f"give values {self.bounds}={size}."
            )


@dataclass(frozen=True)
class Number:
    """A number of at least ``least``, which must be finite by default."""

    least: float = -math.inf
    finite: bool = True

    def fit(self, name: str, value: object, sizes: Sizes) -> float:
        # Convert integers to float. Otherwise, the routine would be compiled again for
        # an integer argument.
        number = float(value) if isinstance(value, numbers.Real) else math.nan
        if not number >= self.least or (self.finite and math.isinf(number)):
            least = f" of at least {self.least}" if self.least > -math.inf else ""
            kind = "finite number" if self.finite else "number"
            raise InputError(
                f"{name}={shown(value)} is out of range; give a {kind}{least}."
            )
        return number


@dataclass(frozen=True)
class Whole:
    """An integer of at least ``least``, which sets the size named ``size``, if any."""

    least: int = 0
    size: str = ""

    def fit(self, name: str, value: object, sizes: Sizes) -> int:
        if (
            not isinstance(value, numbers.Integral)
            or not self.least <= int(value) <= LARGEST
        ):
            raise InputError(
                f"{name}={shown(value)} is out of range; "
                f"give a whole number of at least {self.least}."
            )
        if self.size:
            remedy = _agree(name, (self.size, 0), int(value), sizes)
            if remedy:
                raise InputError(f"{name}={shown(value)} does not fit; {remedy}.")
        return int(value)


class Flag:
    """True or False."""

    def fit(self, name: str, value: object, sizes: Sizes) -> bool:
        if not isinstance(value, (bool, np.bool_)):
            raise InputError(
                f"{name}={shown(value)} is not a truth value; give True or False."
            )
        return bool(value)


def _first(name: str, value: np.ndarray, wrong: np.ndarray, skipped: int = 0) -> str:
    """Return text that states the index and value of the first wrong entry."""
    place = np.argwhere(wrong)[0]
    return f"{name}[{', '.join(map(str, place + skipped))}] is {value[tuple(place)]}"


def _agree(name: str, axis: tuple[str, int], size: int, sizes: Sizes) -> str:
    """Compare a size with earlier arguments, or store it for later arguments.

    Return the remedy for an error message, or an empty string if the size is valid.
    """
    symbol, added = axis
    if symbol.isdigit():
        return "" if size == int(symbol) else f"give {symbol}"
    if symbol not in sizes:
        least = added + (symbol not in MAY_BE_EMPTY)
        sizes[symbol] = size - added, name
        return "" if size >= least else f"give at least {least}"
    value, source = sizes[symbol]
    if size == value + added:
        return ""
    return f"give {value + added}, as {symbol}={value} in {source}"


def takes(
    rule: Callable[[Arguments], None] | None = None, **arguments: Any
) -> Callable:
    """Declare the arguments of a routine; ``rule`` checks several of them together."""

    def decorate(function: Callable) -> Callable:
        function.takes = arguments
        function.rule = rule
        return function

    return decorate


def checked(routine: Callable, of_csr: Callable | None = None) -> Callable:
    """Return a function that checks its arguments, and calls a routine or its twin.

    Parameters
    ----------
    routine : callable
        The routine, decorated with `takes`.
    of_csr : callable or None, default=None
        The twin for CSR rows, which takes three arrays instead of the rows. If None,
        rows must be dense.
    """
    function = getattr(routine, "py_func", routine)
    takes = function.takes
    rule = function.rule
    signature = inspect.signature(function)
    first, *after_first = takes

    @functools.wraps(function)
    def check_and_call(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        args = bound.args
        sizes: Sizes = {}
        kinds = takes
        call = routine
        if of_csr is not None and hasattr(args[0], "indptr"):
            parts, arrays = takes[first].of_csr(first, args[0], sizes)
            kinds = parts | {name: takes[name] for name in after_first}
            args = (*arrays, *args[1:])
            call = of_csr
        arguments = {}
        for (name, kind), value in zip(kinds.items(), args, strict=True):
            arguments[name] = kind.fit(name, value, sizes)
        for name, kind in kinds.items():
            if isinstance(kind, Array):
                kind.check(name, arguments[name], sizes, arguments)
        if rule:
            rule(arguments)
        return call(*arguments.values())

    # Set the module from which the function is imported, so that it can be pickled.
    check_and_call.__module__ = __package__
    check_and_call.__doc__ = re.sub(
        r"(?=Examples\n-----)", RAISES, inspect.cleandoc(function.__doc__ or "")
    )
    return check_and_call
