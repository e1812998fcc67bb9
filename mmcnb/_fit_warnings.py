"""Collect the warnings of a fit, and issue them at the end, most important first.

Every part of the library calls `warn`. Inside `collected_warnings`, a warning is issued
at the end of the block; elsewhere, it is issued immediately.
"""

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

from mmcnb.errors import ClusterWarning

MOST_ISSUED = 5  # if there are more warnings, the last issued warning counts the rest
PACKAGE = str(Path(__file__).parent)
IN_REPORT = "are in report_['warnings']"


class Importance(IntEnum):
    """Importance of a warning by its subject; the most important subject is first."""

    DATA = 0  # rows, columns or cells are not used, or may have been misread
    CLUSTERS = 1  # the clusters may be wrong
    PARAMETER = 2  # a parameter has no effect, or only a part of its effect
    ADVICE = 3  # how cells were read, and what would be faster or safer


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
        """Create a note; its default importance is `Importance.DATA`."""
        note = super().__new__(cls, sentence)
        note.importance = importance
        return note


class _Warning(NamedTuple):
    """A collected warning; a quiet warning is only listed in the report."""

    sentence: str
    importance: Importance
    category: type[Warning]
    is_quiet: bool


class CollectedWarnings:
    """The warnings of a fit so far; equal sentences count once."""

    def __init__(self) -> None:
        self._by_sentence: dict[str, _Warning] = {}

    def add(self, warning: _Warning) -> None:
        """Add a warning unless a warning with the same sentence has been added."""
        self._by_sentence.setdefault(warning.sentence, warning)

    @property
    def _ordered(self) -> list[_Warning]:
        """The warnings by importance; equally important warnings in order of time."""
        return sorted(self._by_sentence.values(), key=lambda one: one.importance)

    @property
    def sentences(self) -> list[str]:
        """All sentences, most important first."""
        return [warning.sentence for warning in self._ordered]

    def hand_to(self, outer: "CollectedWarnings") -> None:
        """Add all warnings to the warnings of an enclosing block."""
        for warning in self._by_sentence.values():
            outer.add(warning)

    def issue(self, elsewhere: str) -> None:
        """Issue at most five warnings, of which the last refers to further warnings.

        Parameters
        ----------
        elsewhere : str
            End of the sentence about further warnings, which says where to find them.
            If it is empty, all warnings are issued.
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
        Importance of the warning, which determines its order among the warnings.
    category : type, default=ClusterWarning
        Class of the warning.
    is_quiet : bool, default=False
        Whether the warning is only listed in the report.
    """
    collected = _collected.get()
    if collected is not None:
        collected.add(_Warning(str(sentence), importance, category, is_quiet))
    elif not is_quiet:
        _issue(str(sentence), category)


def warn_of_notes(notes: Iterable[str]) -> None:
    """Issue a warning for each note about how rows were read."""
    for note in notes:
        warn(note, getattr(note, "importance", Importance.DATA))


@contextmanager
def collected_warnings(elsewhere: str = IN_REPORT) -> Iterator[CollectedWarnings]:
    """Collect the warnings of a block, and issue them at its end.

    In a nested block, the warnings are added to the warnings of the enclosing block,
    which are issued at the end of that block. If an error ends the outer block, all
    warnings are issued, because no report lists them.

    Parameters
    ----------
    elsewhere : str, default="are in report_['warnings']"
        Where a user finds the warnings that are not issued.

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
            # A warning that a filter turns into an error must not replace this error.
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
def ignored_warnings() -> Iterator[None]:
    """Ignore the warnings of a block, such as a fit that is a step of another fit."""
    token = _collected.set(CollectedWarnings())
    try:
        yield
    finally:
        _collected.reset(token)


def _issue(sentence: str, category: type[Warning]) -> None:
    """Issue a warning that points to the line that called the library."""
    level = 1
    frame = sys._getframe()
    while frame.f_back is not None and _is_inside(frame.f_code.co_filename):
        frame = frame.f_back
        level += 1
    warnings.warn(sentence, category, stacklevel=level)


def _is_inside(file: str) -> bool:
    """Return whether a file is part of this package, or is ``contextlib.py``."""
    return file.startswith(PACKAGE) or file.endswith("contextlib.py")
