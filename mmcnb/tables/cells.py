"""Texts of cells as the values that a form says: numbers, flags, seconds or texts."""

import pyarrow as pa
import pyarrow.compute as pc

from mmcnb.samples.encoding import CellForm
from mmcnb.tables.arrow import BOOL
from mmcnb.tables.dates import parse_dates, parse_times
from mmcnb.tables.numbers import FLAG, parse_numbers


def parse_cells(texts: pa.Array, form: CellForm) -> pa.Array:
    """Return the values of texts; null for those that are not as the form says.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from mmcnb.samples.encoding import CellForm
    >>> from mmcnb.tables.cells import parse_cells
    >>> form = CellForm("number", decimal=",", thousands=".")
    >>> parse_cells(pa.array(["1.234,5", "six"], pa.large_string()), form).to_pylist()
    [1234.5, None]
    """
    if form.kind == "number":
        return parse_numbers(texts, form)
    if form.kind == "flag":
        is_flag = pc.match_substring_regex(texts, FLAG)
        return pc.if_else(is_flag, texts, None).cast(BOOL)
    if form.kind == "date":
        return parse_dates(texts, form)
    if form.kind == "time":
        return parse_times(texts, form)
    return texts
