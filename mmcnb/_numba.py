"""Compilation with numba, which no other module imports.

Kernels are compiled on first use, release the GIL, and are cached on disk if the cache
folder is writable.
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

# Fastmath flags that let LLVM reorder sums for SIMD. Unlike the flag "fast", they
# preserve the semantics of NaN and infinity.
VECTORISED = {"reassoc", "contract", "nsz", "arcp"}


def njit(**options: Any) -> Callable[[Callable], Callable]:
    """Return a decorator that compiles a kernel and caches it on disk if possible.

    The kernel releases the GIL. A function whose name begins with an underscore is
    called only by other kernels, whose machine code includes it. Such a function is not
    cached itself and cannot be called from Python, which saves compile time.

    Parameters
    ----------
    **options
        Options of ``numba.njit``, such as ``fastmath=VECTORISED``, which lets LLVM
        vectorise sums.

    Returns
    -------
    callable
        Decorator for the kernel.
    """
    options |= {"nogil": True, "no_cfunc_wrapper": True}

    def decorate(function: Callable) -> Callable:
        if function.__name__.startswith("_"):
            return numba.njit(no_cpython_wrapper=True, **options)(function)
        try:
            return _taking_turns(numba.njit(cache=True, **options)(function))
        # numba raises RuntimeError if it finds no folder for its cache, for example in
        # a read-only or zipped installation.
        except RuntimeError as error:
            logger.debug("no cache for %s: %s", function.__name__, error)
            _warn_cache_is_not_writable()
            return numba.njit(**options)(function)

    return decorate


def jitable(function: Callable) -> Callable:
    """Let compiled code call a function that otherwise remains a Python function.

    Functions with this decorator convert the result of a compiled routine to a named
    tuple. A compiled routine that Python calls must not return a named tuple itself: to
    create it, numba runs Python code after the routine. If Ctrl-C raises an exception
    in this code, numba continues with a null pointer, and the process crashes. Plain
    tuples, arrays and numbers are created without Python code.

    Parameters
    ----------
    function : callable
        Function to decorate. It should not contain loops, because they would be slow
        when Python calls it.

    Returns
    -------
    callable
        ``function`` itself.
    """
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return register_jitable(**options)(function)


@cache
def _warn_cache_is_not_writable() -> None:
    logger.warning(
        "the compile cache cannot be written, so each process compiles again; "
        "set NUMBA_CACHE_DIR to a writable folder."
    )


def _taking_turns(dispatcher: Any) -> Any:
    """Make processes that share a cache write to it one at a time.

    If two processes save machine code for different signatures of a function at the
    same time, numba may use the same file name for both. The index of the cache would
    then map one signature to the machine code of the other.
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
        # Reached if the disk is full or the folder is not writable.
        except (OSError, NotImplementedError) as error:
            logger.debug("not cached in %s: %s", file._cache_path, error)
            _warn_cache_is_not_writable()

    file.save = save_alone
    return dispatcher


def _cache_file(dispatcher: Any) -> Any:
    """Return the object that manages a routine's cache file, or None if not cached."""
    return getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)


def is_compiled(routine: Any) -> bool:
    """Return whether the machine code of a routine is in memory or in the cache.

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
    """Return whether numba caches the machine code of a routine on disk."""
    return _cache_file(routine) is not None


def compile_for(routine: Any, spelled_types: str, names: dict[str, Any]) -> None:
    """Compile a routine for given argument types, or load it from the cache.

    Parameters
    ----------
    routine : dispatcher
        Routine to compile.
    spelled_types : str
        Expressions for the Numba type of each argument, separated by semicolons. They
        are evaluated as Python code, so they must come from a file of this package.
    names : dict of str to object
        Additional names that the expressions may use. The names of Numba types need not
        be included.
    """
    known = {**names, **vars(types), "bool": types.boolean}
    signature = tuple(eval(kind, known) for kind in spelled_types.split("; "))
    routine.compile(signature)


# Number of float32 values in an AVX-512 register. On processors with narrower
# registers, LLVM splits the vectors.
SIMD_LANES = 16
REGISTERS = 4
SIMD_WIDTH = REGISTERS * SIMD_LANES


INT32 = ir.IntType(32)
REGISTER = ir.VectorType(ir.FloatType(), SIMD_LANES)
# Flag that lets LLVM replace a product and a sum by a fused multiply-add.
FUSED = ("contract",)


class _Array(NamedTuple):
    """A numba array in LLVM IR code that is being emitted."""

    context: BaseContext
    builder: ir.IRBuilder
    type: types.Array
    value: ir.Value

    def pointer(self, *place: ir.Value) -> ir.Value:
        """Emit code that computes the address of the element at index ``place``."""
        view = self.context.make_array(self.type)
        array = view(self.context, self.builder, self.value)
        return cgutils.get_item_pointer(
            self.context, self.builder, self.type, array, place, wraparound=False
        )

    def load(self, place: ir.Value, to: types.Type) -> ir.Value:
        """Emit code that loads an array element and converts it to the type ``to``."""
        element = self.builder.load(self.pointer(place))
        return self.context.cast(self.builder, element, self.type.dtype, to)

    def registers(self, *place: ir.Value) -> list[ir.Value]:
        """Emit code for the addresses of the SIMD vectors that make up an array row.

        The row has SIMD_WIDTH numbers.
        """
        zero = self.context.get_constant(types.intp, 0)
        row = self.pointer(*place, zero)
        first = self.builder.bitcast(row, REGISTER.as_pointer())
        numbers = [ir.Constant(INT32, k) for k in range(REGISTERS)]
        return [self.builder.gep(first, [number]) for number in numbers]


def _in_all_lanes(builder: ir.IRBuilder, number: ir.Value) -> ir.Value:
    """Emit code for a register that contains ``number`` in each lane."""
    undefined = ir.Constant(REGISTER, ir.Undefined)
    first_lane = ir.Constant(INT32, 0)
    # Mask of a shuffle that copies lane 0 to every lane.
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
    """Sum ``data[s] * tables[t, indices[s]]`` over ``start <= s < stop`` in float32.

    The sums are written to ``out[i, t]``. ``tables`` and ``out`` are C-ordered
    three-dimensional float32 arrays whose last dimension has length SIMD_WIDTH. The
    sums stay in registers during the whole loop. In a loop that numba vectorises, they
    would be stored and loaded for each term instead.
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
