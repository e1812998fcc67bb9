"""The errors a user can cause, each with one clear sentence."""

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

RESTORE = "restore it from a copy or convert the data again"


class InputError(ValueError):
    """Input that cannot be used: data, a parameter or a path.

    The message is one sentence that names the place and the remedy; the
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
    """Rows with NaN or infinity.

    Attributes
    ----------
    samples : Samples or None
        The rows as they are, if they are in memory.
    """

    samples: Any = None


class GapsError(NotFiniteError):
    """Dense rows with NaN, where gaps are not filled."""


class ColumnError(InputError):
    """Rows that cannot be used, for which one column is named.

    Parameters
    ----------
    fault : str
        What is wrong.
    column : int
        The column with the largest values.
    remedy : str
        What to do.
    """

    def __init__(self, fault: str, column: int, remedy: str) -> None:
        super().__init__(fault, column, remedy)
        self.fault = fault
        self.column = column
        self.remedy = remedy
        self.is_numbered = False  # as the columns of the user are

    def __str__(self) -> str:
        place = f"column {self.column} has the largest values"
        return f"{self.fault} ({place}); {self.remedy}."


class EqualRowsError(ColumnError):
    """All rows are equal, so they cannot be split into clusters."""


@contextmanager
def numbered_columns(order: Any) -> Iterator[None]:
    """Let errors in rows of columns in some order have the numbers before.

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
    """Input that an option mends, which Python and the command line give differently.

    Parameters
    ----------
    message : str
        The sentence with the option as Python takes it.
    command : str, default=""
        The sentence that the command line prints.
    """

    def __init__(self, message: str, command: str = "") -> None:
        super().__init__(message)
        self.command = command or message


class DamagedStoreError(InputError):
    """A store whose bytes are not the bytes that were written."""


class AbsentError(InputError, AttributeError):
    """An attribute that this model does not have.

    `hasattr` says so, and scikit-learn does not show it.
    """


class MemoryLimitError(InputError):
    """A memory limit too small for the work; the message names the least that works."""


def one_line(error: BaseException) -> str:
    """Return the message of another library's error, short enough for a sentence.

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
    """Turn an error of another library into one sentence.

    InputError and MemoryError are re-raised unchanged.

    Parameters
    ----------
    fault, remedy : str
        What stands before the message of the error, and after it.
    *causes : type
        Errors that are turned, even if they tell of want of memory; none are all.
    kind : type, default=InputError
        What is raised.

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
    """Turn an error of another library into one sentence about a damaged store.

    No causes are all errors.
    """
    return worded(fault, RESTORE, *causes, kind=DamagedStoreError)


def damaged_chunks(
    name: str, keys: list[str], what: str, remedy: str = RESTORE
) -> DamagedStoreError:
    """One sentence about missing or damaged chunks."""
    listed = ", ".join(keys[:3]) + (
        f" and {len(keys) - 3} more" if len(keys) > 3 else ""
    )
    verb = "chunks {} are" if len(keys) > 1 else "chunk {} is"
    return DamagedStoreError(f"{name}: {verb.format(listed)} {what}: {remedy}.")


def shown(value: object) -> str:
    """Return a value as a message shows it: on one line, and shortened if it is long.

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

    Words of 300 letters are long; the characters in ``kept`` are not escaped.

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
    """Whether an error is Ctrl-C.

    A compiled kernel that is interrupted raises SystemError because of the
    KeyboardInterrupt, by way of others of its kind.

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
    """The fit ended, but what it found may not be clusters.

    Examples
    --------
    >>> import warnings
    >>> import mmcnb
    >>> warnings.simplefilter("ignore", mmcnb.ClusterWarning)
    """
