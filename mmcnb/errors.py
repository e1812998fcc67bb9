"""Errors that a user can cause; each message is one sentence."""

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

RESTORE = "restore it from a copy or convert the data again"


class InputError(ValueError):
    """Input that cannot be used: data, a parameter or a path.

    The message is one sentence that says what is wrong, where, and what to do. The
    command line prints it and exits with code 2.

    Examples
    --------
    >>> import mmcnb
    >>> try:
    ...     mmcnb.CPMMC(C=0.5).fit([[0.0], [1.0]])
    ... except mmcnb.InputError as error:
    ...     print(error)
    C=0.5 is out of range; give a number above 1.
    """


class NotFiniteError(InputError):
    """Rows that contain NaN or infinity.

    Attributes
    ----------
    samples : Samples or None
        The rows with these values, if they are in memory; otherwise None.
    """

    samples: Any = None


class GapsError(NotFiniteError):
    """Dense rows that contain NaN, where missing values are not filled."""


class ColumnError(InputError):
    """Rows that cannot be used, usually because of one column.

    Parameters
    ----------
    fault : str
        What is wrong.
    column : int
        Number of the column with the largest values, from 0.
    remedy : str
        What to do about it.
    """

    def __init__(self, fault: str, column: int, remedy: str) -> None:
        super().__init__(fault, column, remedy)
        self.fault = fault
        self.column = column
        self.remedy = remedy
        self.is_numbered = False  # whether ``column`` counts the user's columns

    def __str__(self) -> str:
        place = f"column {self.column} has the largest values"
        return f"{self.fault} ({place}); {self.remedy}."


class EqualRowsError(ColumnError):
    """All rows are equal, so they cannot be split into clusters."""


@contextmanager
def numbered_columns(order: Any) -> Iterator[None]:
    """Replace the column number of a ColumnError by the number of the user's column.

    Parameters
    ----------
    order : array-like of int, or None
        The user's number of each column of the rows; None if the numbers are the same.

    Examples
    --------
    >>> from mmcnb.errors import ColumnError, numbered_columns
    >>> try:
    ...     with numbered_columns([5, 7]):
    ...         raise ColumnError("sums overflow", 1, "divide them")
    ... except ColumnError as error:
    ...     print(error)
    sums overflow (column 7 has the largest values); divide them.
    """
    try:
        yield
    except ColumnError as error:
        if order is not None and not error.is_numbered:
            error.column = int(order[error.column])
            error.is_numbered = True
        raise


class OptionError(InputError):
    """Input that an option can fix; Python and the command line spell it differently.

    Parameters
    ----------
    message : str
        The sentence with the option as a parameter in Python, such as ``missing=``.
    command : str, default=""
        The sentence with the option of the command line, such as ``--missing``. If it
        is empty, the command line prints ``message``.
    """

    def __init__(self, message: str, command: str = "") -> None:
        super().__init__(message)
        self.command = command or message


class DamagedStoreError(InputError):
    """A store that differs from what was written."""


class AbsentError(InputError, AttributeError):
    """An attribute that this model does not have.

    It is also an AttributeError, so that `hasattr` returns False, and scikit-learn
    leaves the attribute out of its displays.
    """


class MemoryLimitError(InputError):
    """A memory limit that is too small; the message names the smallest that works."""


def one_line(error: BaseException) -> str:
    """Return the message of another library's error, shortened to fit in a sentence.

    Examples
    --------
    >>> from mmcnb.errors import one_line
    >>> one_line(OSError(28, "No space left on device")), one_line(EOFError())
    ('No space left on device', 'EOFError')
    """
    message = str(getattr(error, "strerror", None) or error)
    line = " ".join(message.split()).rstrip(".:")
    return line[:200] or type(error).__name__


@contextmanager
def worded(
    fault: str,
    remedy: str,
    *causes: type[Exception],
    kind: type[InputError] = InputError,
) -> Iterator[None]:
    """Raise InputError with a full sentence in place of an error of another library.

    InputError is re-raised unchanged, and so is MemoryError unless it is among the
    causes.

    Parameters
    ----------
    fault, remedy : str
        What is wrong, and what to do. The sentence is ``fault (message): remedy.``
        with the message of the original error.
    *causes : type
        Types of errors to replace; by default every Exception.
    kind : type, default=InputError
        Type of the error that is raised instead.

    Examples
    --------
    >>> from mmcnb.errors import InputError, worded
    >>> try:
    ...     with worded("rows.txt cannot be read", "check its permissions", OSError):
    ...         raise PermissionError(13, "Permission denied")
    ... except InputError as error:
    ...     print(error)
    rows.txt cannot be read (Permission denied): check its permissions.
    """
    turned = causes or (Exception,)
    try:
        yield
    except turned as error:
        if isinstance(error, InputError) or (
            isinstance(error, MemoryError) and not causes
        ):
            raise
        raise kind(f"{fault} ({one_line(error)}): {remedy}.") from error


def damage(fault: str, *causes: type[Exception]) -> AbstractContextManager[None]:
    """Raise DamagedStoreError in place of an error of another library.

    ``causes`` are the types of errors to replace; by default every Exception.
    """
    return worded(fault, RESTORE, *causes, kind=DamagedStoreError)


def damaged_chunks(
    name: str, keys: list[str], what: str, remedy: str = RESTORE
) -> DamagedStoreError:
    """Return an error whose sentence names up to three missing or damaged chunks."""
    listed = ", ".join(keys[:3]) + (
        f" and {len(keys) - 3} more" if len(keys) > 3 else ""
    )
    verb = "chunks {} are" if len(keys) > 1 else "chunk {} is"
    return DamagedStoreError(f"{name}: {verb.format(listed)} {what}: {remedy}.")


def shown(value: object) -> str:
    """Return a value as text for a message: on one line, and shortened if it is long.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.errors import shown
    >>> shown("rbf"), shown(np.eye(2))
    ("'rbf'", 'array([[1., 0.], [0., 1.]])')
    """
    lines = (line.strip() for line in repr(value).splitlines())
    text = " ".join(lines)
    return text if len(text) <= 120 else f"{text[:117]}..."


def plain(value: object, kept: str = "\n\t") -> str:
    """Return a text with long words cut and terminal control characters escaped.

    Words of 300 characters or more are cut. Characters in ``kept`` are not escaped.

    Examples
    --------
    >>> from mmcnb.errors import plain
    >>> plain("red" + chr(27)) == "red" + chr(92) + "x1b"
    True
    """
    text = "".join(
        one if one.isprintable() or one in kept else ascii(one)[1:-1]
        for one in str(value)
    )
    return re.sub(r"\S{300,}", lambda word: f"{word[0][:297]}...", text)


def is_interrupt(error: BaseException | None) -> bool:
    """Return whether an error was caused by Ctrl-C.

    If Ctrl-C interrupts a compiled kernel, Python raises a SystemError. Its chain of
    causes may contain further SystemErrors, and ends with the KeyboardInterrupt.

    Examples
    --------
    >>> from mmcnb.errors import is_interrupt
    >>> is_interrupt(KeyboardInterrupt()), is_interrupt(SystemError())
    (True, False)
    """
    while isinstance(error, SystemError):
        error = error.__cause__
    return isinstance(error, KeyboardInterrupt)


class ClusterWarning(UserWarning):
    """The fit finished, but its result may not be clusters.

    The message says which check failed, and what to try.

    Examples
    --------
    >>> import warnings
    >>> import mmcnb
    >>> warnings.simplefilter("ignore", mmcnb.ClusterWarning)
    """
