"""The half of each data set: constants are chosen on one half, and the other tells whether they are good.

A checksum of the name decides, so nobody chooses it. All that is made of a set is in
one half: its parts, its pairs of classes, and its texts as words and as embeddings; so
are all shapes of a family.
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
    """The set that a data set is a part or a form of, or the family of a shape.

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
    """The half of a data set, a shape, a family of shapes, or two classes of a set.

    Parameters
    ----------
    name : str
        Such as ``"segment"``, ``"two-moons"``, ``"rings"`` or ``"usps-3v8"``.

    Returns
    -------
    {"tuning", "confirmation"}
        The half: tuning if the checksum of the set's name is even.

    Examples
    --------
    >>> from benchmarks.halves import half_of
    >>> half_of("optdigits-3v8"), half_of("usps-train")
    ('tuning', 'confirmation')
    """
    return (TUNING, CONFIRMATION)[crc32(whole_of(name).encode()) % 2]
