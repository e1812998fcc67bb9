"""The half of each data set: constants are chosen on one half, and the other tells whether they are good.

``halves.csv`` has a row for every data set of `data_loaders`, every family of shapes of `mmcnb.synthetic`,
and all else made there. Sets that share rows or are of one kind stand in the same half; ``reason`` says
which.
"""

import re
from functools import cache
from pathlib import Path

import pandas as pd

from mmcnb import InputError
from mmcnb.synthetic import SHAPES

__all__ = ["CONFIRMATION", "TUNING", "half_of", "halves"]

TUNING, CONFIRMATION = "tuning", "confirmation"


def halves() -> pd.DataFrame:
    """Every set and its half.

    Returns
    -------
    DataFrame
        One row a set, with columns set, kind ("data", "shapes" for a family of shapes, "made" for other
        synthetic data), half ("tuning" or "confirmation"), reason ("" if there is none).

    Examples
    --------
    >>> from benchmarks.halves import halves
    >>> frame = halves()
    >>> frame.loc[frame["kind"] == "shapes", "set"].tolist()[:3]
    ['rings', 'moons', 'noise']
    """
    path = Path(__file__).with_suffix(".csv")
    return pd.read_csv(path, keep_default_na=False, encoding="utf-8")


def half_of(name: str) -> str:
    """The half of a data set, a shape, a family of shapes, or two digits of a set.

    Parameters
    ----------
    name : str
        Such as ``"segment"``, ``"two-moons"``, ``"rings"`` or ``"usps-3v8"``.

    Returns
    -------
    {"tuning", "confirmation"}
        The half.

    Raises
    ------
    InputError
        If the set has no half.

    Examples
    --------
    >>> from benchmarks.halves import half_of
    >>> half_of("optdigits-3v8"), half_of("two-spirals")
    ('tuning', 'confirmation')
    """
    known = _half_by_set()
    whole = SHAPES[name].family if name in SHAPES else re.sub(r"-\dv\d$", "", name)
    for candidate in (name, whole):
        if candidate in known:
            return known[candidate]
    raise InputError(
        f"{name!r} has no half; add it to benchmarks/halves.csv, beside the sets it is related to."
    )


@cache
def _half_by_set() -> dict[str, str]:
    frame = halves()
    return dict(zip(frame["set"], frame["half"], strict=True))
