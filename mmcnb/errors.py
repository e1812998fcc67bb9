"""The errors a user can cause, each with one clear sentence."""


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


class DamagedStoreError(InputError):
    """A store whose bytes are not the bytes that were written."""


class MemoryLimitError(InputError):
    """A memory limit too small for the work; the message names the least that works."""


def shown(value: object) -> str:
    """A value as a message shows it: on one line, and shortened where it is long.

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


def is_interrupt(error: BaseException | None) -> bool:
    """Whether an error is Ctrl-C.

    A compiled kernel that is interrupted raises SystemError because of the KeyboardInterrupt, by way of
    others of its kind.

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
