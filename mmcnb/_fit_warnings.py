"""Collect the warnings of a fit, and issue them at its end, the most important first.

All modules of the library issue warnings with `warn`. Inside a `collected_warnings`
block, a warning is issued at the end of the block; elsewhere, immediately.
"""

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from enum import IntEnum
from functools import partial
from pathlib import Path
from typing import NamedTuple

from mmcnb.errors import ClusterWarning

# Maximum number of warnings that are issued. If a fit has more, the last one states how
# many are not shown.
MOST_ISSUED = 5
PACKAGE = str(Path(__file__).parent)
IN_REPORT = "are in report_['warnings']"


class Importance(IntEnum):
    """Importance of a warning, determined by its subject; 0 is the most important."""

    DATA = 0  # rows, columns or table cells are not used or may have been misread
    CLUSTERS = 1  # the clusters may be wrong
    PARAMETER = 2  # a parameter has no effect or only part of its effect
    ADVICE = 3  # how table cells were read, or what would be faster or safer


class Note(str):
    """A sentence about how rows were read, with its importance.

    Examples
    --------
    >>> from mmcnb._fit_warnings import Importance, Note
    >>> Note("units were removed", Importance.ADVICE).importance.name
    'ADVICE'
    """

    importance: Importance

    def __new__(cls, sentence: str, importance: Importance = Importance.DATA) -> "Note":
        """Create a note from a sentence."""
        note = super().__new__(cls, sentence)
        note.importance = importance
        return note


class _Warning(NamedTuple):
    """A collected warning; if ``is_quiet``, it appears only in the report."""

    sentence: str
    importance: Importance
    category: type[Warning]
    is_quiet: bool


class CollectedWarnings:
    """Warnings of a fit so far, without duplicate sentences."""

    def __init__(self) -> None:
        self._by_sentence: dict[str, _Warning] = {}

    def add(self, warning: _Warning) -> None:
        """Add a warning unless a warning with the same sentence has been added."""
        self._by_sentence.setdefault(warning.sentence, warning)

    @property
    def _ordered(self) -> list[_Warning]:
        """The warnings by importance; ties are in the order of their addition."""
        return sorted(self._by_sentence.values(), key=lambda one: one.importance)

    @property
    def sentences(self) -> list[str]:
        """The sentences of all warnings, the most important first."""
        return [warning.sentence for warning in self._ordered]

    def hand_to(self, outer: "CollectedWarnings") -> None:
        """Add all warnings to ``outer``, which collects those of an enclosing block."""
        for warning in self._by_sentence.values():
            outer.add(warning)

    def issue(self, elsewhere: str) -> None:
        """Issue at most five of the warnings that are not quiet.

        If there are more than five, the fifth issued warning states how many are not
        shown.

        Parameters
        ----------
        elsewhere : str
            End of the sentence about the warnings that are not shown, which says where
            to find them. If "", all warnings that are not quiet are issued.
        """
        loud = [warning for warning in self._ordered if not warning.is_quiet]
        issued = loud
        if elsewhere and len(loud) > MOST_ISSUED:
            issued = loud[: MOST_ISSUED - 1]
        for warning in issued:
            _issue(warning.sentence, warning.category)
        if len(issued) < len(loud):
            n_more = len(self._by_sentence) - len(issued)
            _issue(f"{n_more} more warnings {elsewhere}.", ClusterWarning)


_collected: ContextVar[CollectedWarnings | None] = ContextVar(
    "_collected", default=None
)


def warn(
    sentence: str,
    importance: Importance,
    category: type[Warning] = ClusterWarning,
    *,
    is_quiet: bool = False,
) -> None:
    """Issue a warning at the end of the current fit or, without a fit, immediately.

    Parameters
    ----------
    sentence : str
        Text of the warning.
    importance : Importance
        Importance of the warning. More important warnings are issued first.
    category : type, default=ClusterWarning
        Class of the warning.
    is_quiet : bool, default=False
        Whether the warning appears only in the report and is not issued.
    """
    collected = _collected.get()
    if collected is not None:
        collected.add(_Warning(str(sentence), importance, category, is_quiet))
    elif not is_quiet:
        _issue(str(sentence), category)


def warn_of_notes(notes: Iterable[str]) -> None:
    """Call `warn` for each note about how rows were read."""
    for note in notes:
        warn(note, getattr(note, "importance", Importance.DATA))


@contextmanager
def collected_warnings(elsewhere: str = IN_REPORT) -> Iterator[CollectedWarnings]:
    """Collect the warnings of a block, and issue them at its end.

    The warnings of a nested block are added to the warnings of the enclosing block, and
    are issued at the end of the outermost block. If an exception ends the outermost
    block, all warnings that are not quiet are issued, because no report lists them.

    Parameters
    ----------
    elsewhere : str, default="are in report_['warnings']"
        End of the sentence about the warnings that are not shown, which says where to
        find them.

    Yields
    ------
    CollectedWarnings
        The warnings of the block so far.

    Examples
    --------
    >>> from mmcnb._fit_warnings import Importance, collected_warnings, warn
    >>> with collected_warnings() as outer:
    ...     with collected_warnings() as inner:
    ...         warn("a slow file.", Importance.ADVICE, is_quiet=True)
    ...         warn("a lost row.", Importance.DATA, is_quiet=True)
    ...     inner.sentences == outer.sentences, outer.sentences
    (True, ['a lost row.', 'a slow file.'])
    """
    outer = _collected.get()
    collected = CollectedWarnings()
    token = _collected.set(collected)
    try:
        yield collected
    except BaseException:
        if outer is None:
            # If a filter turns a warning into an exception, that exception must not
            # replace the original one.
            with suppress(Warning):
                collected.issue(elsewhere="")
        raise
    finally:
        _collected.reset(token)
        if outer is not None:
            collected.hand_to(outer)
    if outer is None:
        collected.issue(elsewhere)


@contextmanager
def warnings_of_threads() -> Iterator[Callable[[], object]]:
    """Collect the warnings of the threads of a block.

    They are added to the warnings of the enclosing block. Without one, they are issued
    when the block ends, so that they point to the line that called the library; the
    stack of a thread does not contain this line.

    Yields
    ------
    callable
        A function that each thread calls first.
    """
    outer = _collected.get()
    collecting = collected_warnings("") if outer is None else nullcontext(outer)
    with collecting as collected:
        yield partial(_collected.set, collected)


@contextmanager
def ignored_warnings() -> Iterator[None]:
    """Ignore the warnings of a block, for example of a fit inside another fit."""
    token = _collected.set(CollectedWarnings())
    try:
        yield
    finally:
        _collected.reset(token)


def _issue(sentence: str, category: type[Warning]) -> None:
    """Issue a warning attributed to the line outside the package that called it."""
    level = 1
    frame = sys._getframe()
    while frame.f_back is not None and _is_inside(frame.f_code.co_filename):
        frame = frame.f_back
        level += 1
    warnings.warn(sentence, category, stacklevel=level)


def _is_inside(file: str) -> bool:
    """Return whether a file is part of this package, or is ``contextlib.py``."""
    return file.startswith(PACKAGE) or file.endswith("contextlib.py")
