"""Make this process meet what mmcnb meets on Windows, as far as Linux can play it.

`tests/test_platforms.py` starts processes that call `pretend` before all else.
"""

import builtins
import ctypes
import io
import os
import shutil
import sys
import types
import warnings
from pathlib import Path

OURS = ("mmcnb", "data_loaders", "benchmarks")
MODULES = {"fcntl", "resource", "termios", "pwd", "grp", "tty", "pty", "posix"}
NAMES = {
    *(
        "sysconf",
        "register_at_fork",
        "sched_getaffinity",
        "getloadavg",
        "O_DIRECTORY",
        "fork",
        "forkpty",
    ),
    *(
        "getuid",
        "geteuid",
        "getgid",
        "getpgid",
        "killpg",
        "setsid",
        "mkfifo",
        "statvfs",
        "nice",
        "posix_fadvise",
    ),
}
HIDDEN = ("/proc", "/sys")


def pretend():
    """From here on there are no POSIX modules and no /proc, and files that are open can neither move nor go.

    The libraries that mmcnb stands on are loaded before, as they know their systems
    themselves.
    """
    warnings.filterwarnings("ignore", category=EncodingWarning)
    import distributed  # noqa: F401
    import filelock  # noqa: F401
    import numba  # noqa: F401, TID251
    import pandas  # noqa: F401
    import psutil  # noqa: F401
    import pyarrow.csv  # noqa: F401
    import sklearn.svm  # noqa: F401
    import zarr  # noqa: F401

    _hide_modules()
    _hide_files()
    _hide_system_calls()
    _hold_open_files()
    warnings.filterwarnings("error", category=EncodingWarning, module="|".join(OURS))


def _hide_modules():
    real = builtins.__import__
    left = types.SimpleNamespace(
        **{name: value for name, value in vars(os).items() if name not in NAMES}
    )

    def importing(name, globals=None, locals=None, fromlist=(), level=0):
        if globals and str(globals.get("__name__")).partition(".")[0] in OURS:
            if name in MODULES:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            if name == "os":
                return left
        return real(name, globals, locals, fromlist, level)

    builtins.__import__ = importing


def _hide_files():
    opened = io.open
    number = os.open

    def refuse(path):
        if str(path).startswith(HIDDEN) and _asker() in (*OURS, "psutil", "__main__"):
            raise FileNotFoundError(2, "No such file or directory", str(path))

    def opening(file, *words, **options):
        refuse(file)
        return opened(file, *words, **options)

    def numbered(path, *words, **options):
        refuse(path)
        if "dir_fd" not in options and Path(path).is_dir():
            raise PermissionError(13, "Permission denied", str(path))
        return number(path, *words, **options)

    io.open = builtins.open = opening
    os.open = numbered


def _hide_system_calls():
    library = ctypes.CDLL

    def loaded(name, *words, **options):
        if name is None and _asker() in OURS:
            raise TypeError("bad argument type for built-in operation")
        return library(name, *words, **options)

    ctypes.CDLL = loaded


def _asker():
    """The package that asks for a file; threadpoolctl and joblib may look where Linux has what they seek."""
    frame = sys._getframe(1)
    while (package := frame.f_globals.get("__name__", "").partition(".")[0]) in (
        "pathlib",
        "other_system",
    ):
        frame = frame.f_back
    return package


def _hold_open_files():
    rename = os.rename
    replace = os.replace
    shutil._use_fd_functions = False

    def moving(source, target, **options):
        if os.path.lexists(target):
            raise FileExistsError(17, "File exists", str(source), None, str(target))
        _refuse_open(source)
        rename(source, target, **options)

    def replacing(source, target, **options):
        _refuse_open(source)
        if Path(target).is_dir():
            raise PermissionError(13, "Access is denied", str(target))
        _refuse_open(target)
        replace(source, target, **options)

    def removing(remove):
        def removed(path, **options):
            _refuse_open(path)
            remove(path, **options)

        return removed

    os.rename = moving
    os.replace = replacing
    os.unlink, os.remove, os.rmdir = map(removing, (os.unlink, os.remove, os.rmdir))


def _refuse_open(path):
    """Raise as Windows does where this process holds a file at or below a path, open or mapped."""
    place = os.path.abspath(path)  # noqa: PTH100
    for held in _held_files():
        # a file by which filelock tries POSIX locks, which it does not on Windows
        if ".filelock-" in held:
            continue
        if held == place or held.startswith(place + os.sep):
            raise PermissionError(13, f"{held} is used by this process", str(path))


_listdir = os.listdir
_readlink = os.readlink
_open = os.open
_read = os.read


def _held_files():
    for number in _listdir("/proc/self/fd"):
        try:
            yield _readlink(f"/proc/self/fd/{number}")
        except OSError:  # the folder that is being listed
            continue
    file = _open("/proc/self/maps", os.O_RDONLY)
    text = b""
    while part := _read(file, 2**20):
        text += part
    os.close(file)
    yield from {
        line.split(None, 5)[5]
        for line in text.decode().splitlines()
        if len(line.split(None, 5)) == 6
    }
