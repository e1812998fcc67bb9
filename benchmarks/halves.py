"""Assign each data set to a half: constants are chosen on one half and confirmed on the other.

A checksum of the name selects the half, so that nobody can choose it. Everything
derived from a data set is in the same half: its parts, its pairs of classes, and its
texts as words and as embeddings. All shapes of a family are in the same half, too.
"""

import re
from zlib import crc32

from mmcnb.datasets import SHAPES

__all__ = ["CONFIRMATION", "TUNING", "half_of", "whole_of"]

TUNING = "tuning"
CONFIRMATION = "confirmation"
PARTS = re.compile(r"(-(\d+v\d+|[A-Z]v[A-Z]|train|test|tra|tes|extended|embedded))+$")
ADULT = re.compile(r"a\da(\.t)?")


def whole_of(name: str) -> str:
    """Return the data set of a part or a form of it, or the family of a shape.

    Examples
    --------
    >>> from benchmarks.halves import whole_of
    >>> [whole_of(name) for name in ("usps-extended-test", "a9a.t", "two-moons", "heart")]
    ['usps', 'adult', 'moons', 'heart']
    """
    if name in SHAPES:
        return SHAPES[name].family
    return "adult" if ADULT.fullmatch(name) else PARTS.sub("", name)


def half_of(name: str) -> str:
    """Return the half of a data set, a shape, a family of shapes, or a pair of classes.

    Parameters
    ----------
    name : str
        Name such as ``"segment"``, ``"two-moons"``, ``"rings"`` or ``"usps-3v8"``.

    Returns
    -------
    {"tuning", "confirmation"}
        "tuning" if the checksum of the data set's name is even.

    Examples
    --------
    >>> from benchmarks.halves import half_of
    >>> half_of("optdigits-3v8"), half_of("usps-train")
    ('tuning', 'confirmation')
    """
    return (TUNING, CONFIRMATION)[crc32(whole_of(name).encode()) % 2]
