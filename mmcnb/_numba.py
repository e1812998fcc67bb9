"""The only module that imports numba.

Kernels are compiled on first use, run without the GIL, and are cached on disk if the
cache folder is writable.
"""

import logging
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numba
from llvmlite import ir
from numba.core import cgutils, event, types
from numba.core.base import BaseContext
from numba.core.typing.templates import Signature
from numba.extending import intrinsic, register_jitable

from mmcnb._compiling import CLOCK

logger = logging.getLogger("mmcnb")


class _WindClock(event.Listener):
    """A listener that runs `CLOCK` while numba compiles."""

    def on_start(self, event: event.Event) -> None:
        CLOCK.start()

    def on_end(self, event: event.Event) -> None:
        CLOCK.stop()


event.register("numba:compile", _WindClock())

# Flags of fastmath that let LLVM reorder sums for SIMD. Unlike "fast", they keep the
# semantics of NaN and infinity.
VECTORISED = {"reassoc", "contract", "nsz", "arcp"}


def njit(**options: Any) -> Callable[[Callable], Callable]:
    """Compile a kernel that releases the GIL, and cache it on disk if possible.

    A function whose name begins with an underscore is called only by other kernels. The
    compiled code of these kernels contains the function, so it is not cached and cannot
    be called from Python, which saves compile time.

    Parameters
    ----------
    **options
        Options of ``numba.njit``; ``fastmath=VECTORISED`` lets LLVM vectorise sums.

    Returns
    -------
    callable
        The decorator of the kernel.
    """
    options |= {"nogil": True, "no_cfunc_wrapper": True}

    def decorate(function: Callable) -> Callable:
        if function.__name__.startswith("_"):
            return numba.njit(no_cpython_wrapper=True, **options)(function)
        try:
            return _taking_turns(numba.njit(cache=True, **options)(function))
        # numba finds no folder for its cache, as in read-only or zipped installations.
        except RuntimeError as error:
            logger.debug("no cache for %s: %s", function.__name__, error)
            _warn_cache_is_not_writable()
            return numba.njit(**options)(function)

    return decorate


def jitable(function: Callable) -> Callable:
    """Let compiled code call a function that otherwise remains a Python function.

    Such functions give names to the parts of a compiled result. A compiled routine that
    Python calls must not return a named tuple itself: to create one, numba runs Python
    code after the routine. If Ctrl-C raises an error there, numba continues with a null
    pointer, and the process crashes. Plain tuples, arrays and numbers are created
    without Python code.

    Parameters
    ----------
    function : callable
        A function without loops, which would be slow in Python.

    Returns
    -------
    callable
        The same function.
    """
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return register_jitable(**options)(function)


@cache
def _warn_cache_is_not_writable() -> None:
    logger.warning(
        "the compile cache cannot be written, so each process compiles anew; "
        "set NUMBA_CACHE_DIR to a writable folder."
    )


def _taking_turns(dispatcher: Any) -> Any:
    """Make processes that share a cache save into it one at a time.

    If two processes save different signatures of a function at the same moment, numba
    may give both the same file name. The index then maps one signature to the code of
    the other.
    """
    file = _cache_file(dispatcher)
    if file is None:
        return dispatcher
    save = file.save

    def save_alone(key: object, data: object) -> None:
        from filelock import FileLock

        try:
            # The system releases the lock if the process is killed.
            with FileLock(Path(file._cache_path) / "lock"):
                save(key, data)
        # The disk is full, or the folder is not writable.
        except (OSError, NotImplementedError) as error:
            logger.debug("not cached in %s: %s", file._cache_path, error)
            _warn_cache_is_not_writable()

    file.save = save_alone
    return dispatcher


def _cache_file(dispatcher: Any) -> Any:
    """Return numba's cache files of a routine, or None if it is not cached."""
    return getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)


def is_compiled(routine: Any) -> bool:
    """Return whether machine code of a routine is in memory or in the cache.

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


def has_cache(routine: Any) -> bool:
    """Return whether the machine code of a routine is cached on disk."""
    return _cache_file(routine) is not None


def compile_for(routine: Any, spelled_types: str, names: dict[str, Any]) -> None:
    """Compile a routine for some types, or load it from the cache.

    Parameters
    ----------
    routine : dispatcher
        The routine.
    spelled_types : str
        Expressions of Numba types, one per argument, separated by semicolons. They are
        evaluated, so they must come from a file of this package.
    names : dict of str to object
        Names that the expressions use in addition to those of Numba's types.
    """
    known = {**names, **vars(types), "bool": types.boolean}
    signature = tuple(eval(kind, known) for kind in spelled_types.split("; "))
    routine.compile(signature)


# Number of float32 values in a register of AVX-512. On processors with narrower
# registers, LLVM splits the vectors.
SIMD_LANES = 16
REGISTERS = 4
SIMD_WIDTH = REGISTERS * SIMD_LANES


INT32 = ir.IntType(32)
REGISTER = ir.VectorType(ir.FloatType(), SIMD_LANES)
# A product and a sum may become one fused multiply-add.
FUSED = ("contract",)


class _Array(NamedTuple):
    """A numba array in the code that is being emitted."""

    context: BaseContext
    builder: ir.IRBuilder
    type: types.Array
    value: ir.Value

    def pointer(self, *place: ir.Value) -> ir.Value:
        """Emit code that computes the address of an element."""
        view = self.context.make_array(self.type)
        array = view(self.context, self.builder, self.value)
        return cgutils.get_item_pointer(
            self.context, self.builder, self.type, array, place, wraparound=False
        )

    def load(self, place: ir.Value, to: types.Type) -> ir.Value:
        """Emit code that loads an element and converts it to a type."""
        element = self.builder.load(self.pointer(place))
        return self.context.cast(self.builder, element, self.type.dtype, to)

    def registers(self, *place: ir.Value) -> list[ir.Value]:
        """Emit the addresses of the vectors that form a row of SIMD_WIDTH numbers."""
        zero = self.context.get_constant(types.intp, 0)
        row = self.pointer(*place, zero)
        first = self.builder.bitcast(row, REGISTER.as_pointer())
        numbers = [ir.Constant(INT32, k) for k in range(REGISTERS)]
        return [self.builder.gep(first, [number]) for number in numbers]


def _in_all_lanes(builder: ir.IRBuilder, number: ir.Value) -> ir.Value:
    """Emit a register that contains the same number in each lane."""
    undefined = ir.Constant(REGISTER, ir.Undefined)
    first_lane = ir.Constant(INT32, 0)
    # The mask of a shuffle that copies lane 0 to every lane.
    all_lanes = ir.Constant(ir.VectorType(INT32, SIMD_LANES), [0] * SIMD_LANES)
    register = builder.insert_element(undefined, number, first_lane)
    return builder.shuffle_vector(register, undefined, all_lanes)


@intrinsic
def sum_scaled_rows(  # noqa: PLR0913
    typing_context: object,
    data: types.Array,
    indices: types.Array,
    start: types.Integer,
    stop: types.Integer,
    tables: types.Array,
    t: types.Integer,
    out: types.Array,
    i: types.Integer,
) -> tuple[Signature, Callable[..., ir.Value]]:
    """Sum ``data[s] * tables[t, indices[s]]`` over s from start to stop in float32.

    The sums are written to ``out[i, t]``. ``tables`` and ``out`` are C-ordered float32
    arrays of three dimensions, the last of which has SIMD_WIDTH numbers. The sums stay
    in registers over the whole row. A loop that numba vectorises would instead store
    and load them at each term.
    """
    index = types.intp
    signature = types.void(data, indices, index, index, tables, index, out, index)

    def emit(
        context: BaseContext,
        builder: ir.IRBuilder,
        signature: Signature,
        args: Sequence[ir.Value],
    ) -> ir.Value:
        values = _Array(context, builder, data, args[0])
        columns = _Array(context, builder, indices, args[1])
        first = args[2]
        last = args[3]
        rows = _Array(context, builder, tables, args[4])
        table = args[5]
        sums = _Array(context, builder, out, args[6])
        row_of_sums = args[7]
        zeros = ir.Constant(REGISTER, [0.0] * SIMD_LANES)
        totals = [cgutils.alloca_once_value(builder, zeros) for _ in range(REGISTERS)]
        with cgutils.for_range(builder, last, start=first, intp=first.type) as loop:
            value = values.load(loop.index, types.float32)
            scale = _in_all_lanes(builder, value)
            column = columns.load(loop.index, index)
            parts = rows.registers(table, column)
            for total, part in zip(totals, parts, strict=True):
                term = builder.fmul(scale, builder.load(part, align=4), flags=FUSED)
                added = builder.fadd(builder.load(total), term, flags=FUSED)
                builder.store(added, total)
        places = sums.registers(row_of_sums, table)
        for total, place in zip(totals, places, strict=True):
            builder.store(builder.load(total), place, align=4)
        return context.get_dummy_value()

    return signature, emit
