"""Parse the text of cells as numbers, flags, dates, times or ordered texts."""

import pyarrow as pa
import pyarrow.compute as pc

from mmcnb.samples.encoding import CellForm
from mmcnb.tables.arrow import BOOL, FLOAT64
from mmcnb.tables.dates import parse_dates, parse_times
from mmcnb.tables.numbers import FLAG, parse_numbers
from mmcnb.tables.orders import places_of_texts


def parse_cells(texts: pa.Array, form: CellForm) -> pa.Array:
    """Parse texts in a given form, and replace texts that do not match it with null.

    Parameters
    ----------
    texts : pyarrow.Array of large_string
        Texts without surrounding spaces.
    form : CellForm
        Kind of the values, and how they are written.

    Returns
    -------
    pyarrow.Array
        float64 for numbers, for dates and times (in seconds) and for ordered texts
        (zero-based ranks); bool for flags; the texts themselves for the kind "text".

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
    if form.kind == "order":
        return _places(texts, form)
    if form.kind == "date":
        return parse_dates(texts, form)
    if form.kind == "time":
        return parse_times(texts, form)
    return texts


def _places(texts: pa.Array, form: CellForm) -> pa.Array:
    """Return the zero-based rank of each text among the levels of an order.

    Texts that are not levels become null.
    """
    distinct = pc.unique(texts)
    of_texts = ["" if text is None else text for text in distinct.to_pylist()]
    places = places_of_texts(form.levels, of_texts, form.by_keys)
    return pa.array(places, FLOAT64).take(pc.index_in(texts, distinct))
