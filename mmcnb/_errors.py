"""The errors a user can cause, each with one clear sentence."""


class InputError(ValueError):
    """Input that cannot be used: data, a parameter or a path.

    The message is one sentence that names the place and the remedy; the
    command line prints it and exits with code 2.
    """


class DamagedStoreError(InputError):
    """A store whose bytes are not the bytes that were written."""


class MemoryLimitError(InputError):
    """A memory limit too small for the work; the message names the least that works."""
