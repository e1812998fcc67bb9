"""The one place that imports numba.

Kernels are compiled on first use, without the GIL, and kept in an on-disk
cache where the machine allows one.
"""

import logging
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils, event
from numba.extending import intrinsic

from mmcnb._compiling import CLOCK

logger = logging.getLogger("mmcnb")


class _WindClock(event.Listener):
    def on_start(self, event: event.Event) -> None:
        CLOCK.start()

    def on_end(self, event: event.Event) -> None:
        CLOCK.stop()


event.register("numba:compile", _WindClock())

# Sums may be reordered for SIMD; NaN and infinity keep their meaning.
VECTORISED = {"reassoc", "contract", "nsz", "arcp"}


def njit(**options: Any) -> Callable[[Callable], Callable]:
    """Compile a kernel: no GIL, cached on disk when a cache folder can be written.

    A function whose name begins with an underscore is for other kernels alone. Their
    compiled code contains it, so it has no entry from Python and no place in the cache:
    that compiles in less time.

    Parameters
    ----------
    **options
        Passed to ``numba.njit``; ``fastmath=VECTORISED`` lets sums be vectorised.

    Returns
    -------
    callable
        A decorator.
    """
    options |= {"nogil": True, "no_cfunc_wrapper": True}

    def decorate(function: Callable) -> Callable:
        if function.__name__.startswith("_"):
            return numba.njit(no_cpython_wrapper=True, **options)(function)
        try:
            return _taking_turns(numba.njit(cache=True, **options)(function))
        except (
            RuntimeError
        ) as error:  # no folder for the cache: read-only or zipped installs
            logger.debug("no cache for %s: %s", function.__name__, error)
            _say_once_that_nothing_is_kept()
            return numba.njit(**options)(function)

    return decorate


@cache
def _say_once_that_nothing_is_kept() -> None:
    remedy = "set NUMBA_CACHE_DIR to a folder that can be written"
    logger.warning(
        "the compile cache cannot be written, so each process compiles anew; %s.",
        remedy,
    )


def _taking_turns(dispatcher: Any) -> Any:
    """Let processes save into the cache that they share one at a time.

    Where two save signatures of one function at the same moment, numba gives both the
    same file, and the index can name the code of one as that of the other.
    """
    file = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if file is None:
        return dispatcher
    save = file.save

    def save_alone(key: Any, data: Any) -> None:
        from filelock import FileLock

        try:
            with FileLock(
                Path(file._cache_path) / "lock"
            ):  # goes when its process does
                save(key, data)
        except (OSError, NotImplementedError) as error:  # a full disk, a closed folder
            logger.debug("not kept in %s: %s", file._cache_path, error)
            _say_once_that_nothing_is_kept()

    file.save = save_alone
    return dispatcher


def is_compiled(routine: Any) -> bool:
    """Whether this process or the cache has machine code of a routine, for whatever types.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb import kernels
    >>> from mmcnb._numba import is_compiled
    >>> scores = kernels.cluster_scores(np.ones((1, 2)), np.ones((1, 2)), np.zeros(1))
    >>> is_compiled(kernels.unchecked.cluster_scores)
    True
    """
    if routine.overloads:
        return True
    kept = getattr(getattr(routine, "_cache", None), "_cache_file", None)
    try:
        return bool(kept and kept._load_index())
    except OSError:
        return False


SIMD_LANES = (
    16  # float32 in a register of AVX-512; narrower machines take several registers
)
SIMD_WIDTH = 4 * SIMD_LANES


@intrinsic
def sum_scaled_rows(
    typing_context: Any,
    data: Any,
    indices: Any,
    start: Any,
    stop: Any,
    tables: Any,
    t: Any,
    out: Any,
    i: Any,
) -> Any:
    """``out[i, t] = sum(data[s] * tables[t, indices[s]] for s in range(start, stop))`` in float32.

    ``tables`` and ``out`` are C-ordered float32 of three dimensions, the last of
    SIMD_WIDTH. The sums stay in registers over the whole row, which no loop that numba
    vectorises does: it stores and loads them again at each term.
    """
    index = numba.intp
    signature = numba.void(data, indices, index, index, tables, index, out, index)
    vector = ir.VectorType(ir.FloatType(), SIMD_LANES)
    undefined = ir.Constant(vector, ir.Undefined)
    first_lane = ir.Constant(ir.IntType(32), 0)
    everywhere = ir.Constant(
        ir.VectorType(ir.IntType(32), SIMD_LANES), [0] * SIMD_LANES
    )

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def item(kind: Any, array: Any, *position: Any) -> Any:
            view = context.make_array(kind)(context, builder, array)
            return cgutils.get_item_pointer(
                context, builder, kind, view, position, wraparound=False
            )

        def registers(kind: Any, array: Any, *position: Any) -> list[Any]:
            first = item(kind, array, *position, context.get_constant(index, 0))
            first = builder.bitcast(first, vector.as_pointer())
            return [
                builder.gep(first, [ir.Constant(ir.IntType(32), k)]) for k in range(4)
            ]

        values, columns, first, last, rows, t, sums, i = args
        nothing = ir.Constant(vector, [0.0] * SIMD_LANES)
        totals = [cgutils.alloca_once_value(builder, nothing) for _ in range(4)]
        with cgutils.for_range(builder, last, start=first, intp=first.type) as loop:
            value = builder.load(item(data, values, loop.index))
            value = context.cast(builder, value, data.dtype, numba.float32)
            scale = builder.insert_element(undefined, value, first_lane)
            scale = builder.shuffle_vector(scale, undefined, everywhere)
            column = builder.load(item(indices, columns, loop.index))
            column = context.cast(builder, column, indices.dtype, index)
            for total, row in zip(
                totals, registers(tables, rows, t, column), strict=True
            ):
                term = builder.fmul(
                    scale, builder.load(row, align=4), flags=("contract",)
                )
                builder.store(
                    builder.fadd(builder.load(total), term, flags=("contract",)), total
                )
        for total, place in zip(totals, registers(out, sums, i, t), strict=True):
            builder.store(builder.load(total), place, align=4)
        return context.get_dummy_value()

    return signature, emit
