"""Exceptions for errors that a user can cause; each message is one sentence."""

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

RESTORE = "restore it from a copy or convert the data again"


class InputError(ValueError):
    """Error for data, a parameter or a path that cannot be used.

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
    """Error for rows that contain NaN or infinity.

    Attributes
    ----------
    samples : Samples or None
        The samples that contain these values if they are in memory; otherwise None.
    """

    samples: Any = None


class GapsError(NotFiniteError):
    """Error for dense rows that contain NaN if missing values are not filled."""


class ColumnError(InputError):
    """Error for rows that cannot be used, usually because of one column.

    Parameters
    ----------
    fault : str
        Clause that says what is wrong.
    column : int or None
        Zero-based index of the column with the largest values; None if the fault does
        not depend on a column.
    remedy : str
        Clause that says what the user can do.
    """

    def __init__(self, fault: str, column: int | None, remedy: str) -> None:
        super().__init__(fault, column, remedy)
        self.fault = fault
        self.column = column
        self.remedy = remedy
        self.is_numbered = False  # whether ``column`` is an index in the user's data

    def __str__(self) -> str:
        place = ""
        if self.column is not None:
            place = f" (column {self.column} has the largest values)"
        return f"{self.fault}{place}; {self.remedy}."


class EqualRowsError(ColumnError):
    """Error for rows that are all equal, so that they cannot be split into clusters."""


@contextmanager
def numbered_columns(order: Any) -> Iterator[None]:
    """Replace the index in a ColumnError by the index of the column in the user's data.

    Parameters
    ----------
    order : array-like of int, or None
        For each column of the rows, its index in the user's data. None means that the
        order is the same.

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
        column = error.column
        if order is not None and column is not None and not error.is_numbered:
            error.column = int(order[column])
            error.is_numbered = True
        raise


class OptionError(InputError):
    """Error whose message names an option that fixes it.

    The option has different names in Python and on the command line.

    Parameters
    ----------
    message : str
        Message that names the Python parameter, such as ``missing=``.
    command : str, default=""
        Message that names the command-line option, such as ``--missing``. If it is
        empty, the command line prints ``message``.
    """

    def __init__(self, message: str, command: str = "") -> None:
        super().__init__(message)
        self.command = command or message


class DamagedStoreError(InputError):
    """Error for a store whose content differs from what was written."""


class AbsentError(InputError, AttributeError):
    """Error for an attribute that a model does not have.

    The class is also a subclass of AttributeError, so that `hasattr` returns False and
    scikit-learn leaves the attribute out of its displays.
    """


class MemoryLimitError(InputError):
    """Error for a memory limit that is too small.

    The message names the smallest limit that works.
    """


def one_line(error: BaseException) -> str:
    """Return the message of an exception as one line of at most 200 characters.

    If the message is empty, the name of the exception's type is returned.

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
    """Convert exceptions of other libraries to InputError with a full sentence.

    InputError is re-raised unchanged. MemoryError is re-raised unchanged unless
    ``causes`` includes it.

    Parameters
    ----------
    fault, remedy : str
        Clauses that say what is wrong and what to do. The new message is ``fault
        (message): remedy.``, where ``message`` is that of the original exception.
    *causes : type
        Types of exceptions to convert. By default, all types are converted.
    kind : type, default=InputError
        Type of the exception that is raised instead.

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
    """Convert exceptions of other libraries to DamagedStoreError.

    Parameters
    ----------
    fault : str
        Clause that says what is wrong.
    *causes : type
        Types of exceptions to convert. By default, all types are converted.
    """
    return worded(fault, RESTORE, *causes, kind=DamagedStoreError)


def damaged_chunks(
    name: str, keys: list[str], what: str, remedy: str = RESTORE
) -> DamagedStoreError:
    """Return an error whose message names up to three missing or damaged chunks.

    Parameters
    ----------
    name : str
        Name of the store or array in the message.
    keys : list of str
        Keys of the missing or damaged chunks.
    what : str
        What is wrong with the chunks, such as "missing".
    remedy : str, default=RESTORE
        Clause that says what to do.
    """
    listed = ", ".join(keys[:3]) + (
        f" and {len(keys) - 3} more" if len(keys) > 3 else ""
    )
    verb = "chunks {} are" if len(keys) > 1 else "chunk {} is"
    return DamagedStoreError(f"{name}: {verb.format(listed)} {what}: {remedy}.")


def shown(value: object) -> str:
    """Return the repr of a value for a message, in one line of at most 120 characters.

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
    """Return a value as text that is safe to print on a terminal.

    Unprintable characters are escaped, except those in ``kept``. Words of 300
    characters or more are truncated.

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
    """Return whether an exception was caused by Ctrl-C.

    If Ctrl-C interrupts a compiled kernel, Python raises a SystemError. Its chain of
    causes may contain further SystemErrors and ends with a KeyboardInterrupt.

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
    """Warning that a fit has finished but that its result may be unreliable.

    The message says what was noticed and, where possible, what to try.

    Examples
    --------
    >>> import warnings
    >>> import mmcnb
    >>> warnings.simplefilter("ignore", mmcnb.ClusterWarning)
    """
