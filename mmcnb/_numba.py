"""The one place that imports numba.

Kernels are compiled on first use, without the GIL, and kept in an on-disk
cache where the machine allows one.
"""

import logging
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils, event, types
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
        # There is no folder for the cache in read-only or zipped installs.
        except RuntimeError as error:
            logger.debug("no cache for %s: %s", function.__name__, error)
            _warn_cache_is_not_writable()
            return numba.njit(**options)(function)

    return decorate


@cache
def _warn_cache_is_not_writable() -> None:
    logger.warning(
        "the compile cache cannot be written, so each process compiles anew; "
        "set NUMBA_CACHE_DIR to a folder that can be written."
    )


def _taking_turns(dispatcher: Any) -> Any:
    """Let processes save into the cache that they share one at a time.

    Where two save signatures of one function at the same moment, numba gives both the
    same file, and the index can name the code of one as that of the other.
    """
    file = _cache_file(dispatcher)
    if file is None:
        return dispatcher
    save = file.save

    def save_alone(key: Any, data: Any) -> None:
        from filelock import FileLock

        try:
            # The lock ends with its process.
            with FileLock(Path(file._cache_path) / "lock"):
                save(key, data)
        # The disk is full, or the folder is closed.
        except (OSError, NotImplementedError) as error:
            logger.debug("not kept in %s: %s", file._cache_path, error)
            _warn_cache_is_not_writable()

    file.save = save_alone
    return dispatcher


def _cache_file(dispatcher: Any) -> Any:
    """Return numba's files of a routine, or None if it has none."""
    return getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)


def is_compiled(routine: Any) -> bool:
    """Return whether the process or the cache has machine code of a routine.

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
    file = _cache_file(routine)
    try:
        return bool(file and file._load_index())
    except OSError:
        return False


# float32 in a register of AVX-512; narrower machines take several registers.
SIMD_LANES = 16
REGISTERS = 4
SIMD_WIDTH = REGISTERS * SIMD_LANES


@intrinsic
def sum_scaled_rows(
    typing_context: Any,
    data: types.Array,
    indices: types.Array,
    start: types.Integer,
    stop: types.Integer,
    tables: types.Array,
    t: types.Integer,
    out: types.Array,
    i: types.Integer,
) -> Any:
    """Sum ``data[s] * tables[t, indices[s]]`` over s from start to stop in float32.

    The sums are written to ``out[i, t]``. ``tables`` and ``out`` are C-ordered float32
    of three dimensions, the last of SIMD_WIDTH. The sums stay in registers over the
    whole row, which no loop that numba vectorises does: it stores and loads them again
    at each term.
    """
    index = types.intp
    signature = types.void(data, indices, index, index, tables, index, out, index)
    int32 = ir.IntType(32)
    register = ir.VectorType(ir.FloatType(), SIMD_LANES)
    undefined = ir.Constant(register, ir.Undefined)
    first_lane = ir.Constant(int32, 0)
    # A shuffle that takes lane 0 for every lane.
    all_lanes = ir.Constant(ir.VectorType(int32, SIMD_LANES), [0] * SIMD_LANES)

    def emit(
        context: Any, builder: ir.IRBuilder, signature: Any, args: Sequence[ir.Value]
    ) -> ir.Value:
        def pointer(kind: types.Array, array: ir.Value, *place: ir.Value) -> ir.Value:
            view = context.make_array(kind)(context, builder, array)
            return cgutils.get_item_pointer(
                context, builder, kind, view, place, wraparound=False
            )

        def load(kind: types.Array, array: ir.Value, place: ir.Value, to: Any) -> Any:
            value = builder.load(pointer(kind, array, place))
            return context.cast(builder, value, kind.dtype, to)

        def registers(
            kind: types.Array, array: ir.Value, *place: ir.Value
        ) -> list[ir.Value]:
            first = pointer(kind, array, *place, context.get_constant(index, 0))
            first = builder.bitcast(first, register.as_pointer())
            return [
                builder.gep(first, [ir.Constant(int32, k)]) for k in range(REGISTERS)
            ]

        values, columns, first, last, rows, t, sums, i = args
        zeros = ir.Constant(register, [0.0] * SIMD_LANES)
        totals = [cgutils.alloca_once_value(builder, zeros) for _ in range(REGISTERS)]
        with cgutils.for_range(builder, last, start=first, intp=first.type) as loop:
            value = load(data, values, loop.index, types.float32)
            scale = builder.insert_element(undefined, value, first_lane)
            scale = builder.shuffle_vector(scale, undefined, all_lanes)
            column = load(indices, columns, loop.index, index)
            row = registers(tables, rows, t, column)
            for total, part in zip(totals, row, strict=True):
                part = builder.load(part, align=4)
                term = builder.fmul(scale, part, flags=("contract",))
                added = builder.fadd(builder.load(total), term, flags=("contract",))
                builder.store(added, total)
        for total, place in zip(totals, registers(out, sums, i, t), strict=True):
            builder.store(builder.load(total), place, align=4)
        return context.get_dummy_value()

    return signature, emit
