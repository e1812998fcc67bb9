"""Public compiled routines with arguments that do not fit, or only just.

**Promised.** `mmcnb.kernels` refuses an argument by one sentence that names it, or
computes. Nothing is read or written outside the arrays, and those that are not said to
be overwritten stay as they are. There is no traceback, no warning and no crash.

**Not promised.** Numbers of rounds may ask for work without end; such ones are not
tried.

A try changes one or two arguments of one routine. Each array lies between two pages of
memory that end the process when they are touched. It is first moved up to the one
behind it, then to the one before it: what comes out may not differ.
"""

import ctypes
import mmap
import random
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mmcnb import kernels
from mmcnb.samples import CSRBlock
from tests.campaigns.hostile import answer_of
from tests.campaigns.models import ODD_FLOATS, entry, order, whole
from tests.kernels.arguments import BY_ROWS, good_arguments

TRIES = 20_000
CI_TRIES = 200
SECONDS = 90
NAMES = tuple(kernels.__all__)
CSR = "data", "indices", "indptr"
ODD_SCALARS: tuple[Any, ...] = (
    None,
    "1",
    [1],
    True,
    -1,
    0,
    1,
    2,
    7,
    40,
    1.5,
    2**63,
    10**30,
    np.float32(0.5),
    np.int8(3),
    np.array(1.0),
    np.bool_(True),
    1j,
    *ODD_FLOATS,
)
MADE = {  # by name, arrays in place of one another
    "empty": lambda array: array[:0],
    "rows alone": lambda array: array[..., :0],
    "strided": lambda array: np.repeat(array, 2, axis=-1)[..., ::2],
    "read-only": lambda array: np.frombuffer(array.tobytes(), array.dtype).reshape(
        array.shape
    ),
    "unaligned": lambda array: (
        np.frombuffer(b"x" + array.tobytes(), np.uint8)[1:]
        .view(array.dtype)
        .reshape(array.shape)
    ),
    "masked": np.ma.masked_array,
    "list": lambda array: array.tolist(),
    "objects": lambda array: array.astype(object),
    "none": lambda array: None,
}


def between_guards(array: np.ndarray, at_end: bool) -> np.ndarray:
    """A copy of a C-ordered array that ends, or begins, at a page that may not be touched."""
    page = mmap.PAGESIZE
    n_bytes = array.nbytes
    length = -(-max(n_bytes, 1) // page) * page
    memory = mmap.mmap(-1, length + 2 * page)
    first = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for guard in (first, first + page + length):
        assert (
            ctypes.CDLL(None).mprotect(ctypes.c_void_p(guard), ctypes.c_size_t(page), 0)
            == 0
        )
    start = page + (length - n_bytes if at_end else 0)
    copy = np.frombuffer(memory, array.dtype, array.size, start).reshape(array.shape)
    copy[...] = array
    copy.flags.writeable = array.flags.writeable
    return copy


def placed(given: dict[str, Any], at_end: bool) -> dict[str, Any]:
    """Arguments whose arrays lie between guards; others as they are."""

    def one(value: Any) -> Any:
        if (
            type(value) is not np.ndarray
            or value.dtype.hasobject
            or not sys.platform.startswith("linux")
        ):
            return value
        is_plain = value.flags.c_contiguous and value.flags.aligned
        return between_guards(value, at_end) if is_plain else value

    return {name: one(value) for name, value in given.items()}


def changed(draw: random.Random, given: dict[str, Any]) -> str:
    """Change one argument, and say how."""
    found = {
        name: value for name, value in given.items() if isinstance(value, np.ndarray)
    }
    arrays = {name: value for name, value in found.items() if not value.dtype.hasobject}
    others = sorted(set(given) - set(arrays) - {"n_features"})
    if others and draw.random() < 0.3:
        name = draw.choice(others)
        value = draw.choice(ODD_SCALARS)
        given[name] = value
        return f"{name}={value!r}"
    # The first change may have left a routine of one argument no numbers to change.
    if not any(array.size and array.ndim for array in arrays.values()):
        return "nothing else"
    if draw.random() < 0.3:
        name = draw.choice(sorted(arrays))
        made = draw.choice(list(MADE))
        given[name] = MADE[made](arrays[name])
        return f"{name}: {made}"
    change: Callable[..., str] = draw.choice((entry, entry, entry, whole, order))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        what = change(draw, arrays)
    given |= arrays
    return what


def attempt(seed: int, folder: Path) -> dict[str, Any]:
    """Change arguments of one routine, call it twice, and compare."""
    draw = random.Random(seed)
    name = NAMES[seed % len(NAMES)]
    routine = getattr(kernels, name)
    is_sparse = name in BY_ROWS and draw.random() < 0.4
    given = good_arguments(
        name,
        draw.randrange(1000),
        draw.choice(("float32", "float64")),
        sparse=is_sparse,
    )
    first = next(iter(given))
    if is_sparse:
        given = {
            **dict(zip(CSR, given[first][:3], strict=True)),
            "n_features": given.pop(first)[3],
            **given,
        }
    what = "; ".join(changed(draw, given) for _ in range(draw.choice((1, 1, 2))))
    facts = {"routine": name, "csr": is_sparse, "what": what}

    def call(arguments: dict[str, Any]) -> Any:
        if is_sparse:
            block = CSRBlock(
                *(arguments[part] for part in CSR), arguments["n_features"]
            )
            others = {
                key: value
                for key, value in arguments.items()
                if key not in (*CSR, "n_features")
            }
            return routine(**{first: block, **others})
        return routine(**arguments)

    try:
        with warnings.catch_warnings(action="error"):
            answers = [
                judged(routine, call, placed(given, at_end)) for at_end in (True, False)
            ]
    except Exception as error:
        error.add_note(str(facts))
        raise
    assert answers[0] == answers[1], (
        f"{facts}: answers depend on what lies beside the arrays"
    )
    return facts | {"answer": "refused" if isinstance(answers[0], str) else "computed"}


def judged(routine: Any, call: Callable[[Any], Any], given: dict[str, Any]) -> Any:
    """The sentence that refuses, which names an argument; or the bytes that come out."""
    found: list[Any] = []
    before = {
        name: value.tobytes()
        for name, value in given.items()
        if isinstance(value, np.ndarray)
    }
    said = ""

    def ask() -> None:
        nonlocal said
        try:
            found.append(call(given))
        except ValueError as error:
            said = str(error)
            raise

    refused = answer_of(ask) == "refused"
    written = {
        name for name, kind in routine.takes.items() if getattr(kind, "written", False)
    }
    stay = set(before) - (set() if refused else written)
    assert all(given[name].tobytes() == before[name] for name in stay), (
        "an argument was overwritten"
    )
    if refused:
        assert any(name in said for name in (*routine.takes, *CSR)), (
            f"no argument is named: {said}"
        )
        return said
    given_back = found[0] if isinstance(found[0], tuple) else found
    results = [*given_back, *(given[name] for name in sorted(written))]
    return [np.asarray(result).tobytes() for result in results if result is not None]
