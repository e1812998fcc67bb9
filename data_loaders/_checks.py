"""Check arguments, and refuse wrong ones with one sentence."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np

from mmcnb import InputError


def check_name(name: str, value: Any, known: Iterable[str]) -> None:
    """Refuse a value that is not one of the given names.

    Raises
    ------
    InputError
        The message lists the names.
    """
    names = list(known)
    if not isinstance(value, str) or value not in names:
        raise InputError(
            f"{name}={_shown(value)} is unknown; choose one of {str(names)[1:-1]}."
        )


def check_whole(name: str, value: Any, least: int, most: int = 2**31 - 1) -> None:
    """Refuse a value that is not a whole number in a range.

    Raises
    ------
    InputError
        The message states the range.
    """
    is_whole = isinstance(value, Integral) and not isinstance(
        value, bool | np.timedelta64
    )
    if not is_whole or not least <= value <= most:
        ends = f"of at least {least} and at most {most}"
        raise InputError(
            f"{name}={_shown(value)} is out of range; give a whole number {ends}."
        )


def seeded(random_state: Any) -> Any:
    """Return NumPy's generator for a seed, as scikit-learn's ``check_random_state`` does.

    Raises
    ------
    InputError
        If the seed is not valid.
    """
    from sklearn.utils import check_random_state

    try:
        return check_random_state(random_state)
    except (TypeError, ValueError) as error:
        remedy = "give a whole number from 0 to 2**32 - 1, a RandomState, or None"
        raise InputError(
            f"random_state={_shown(random_state)} is not a valid seed; {remedy}."
        ) from error


def _shown(value: Any) -> str:
    return " ".join(reprlib.repr(value).split())[:120]
