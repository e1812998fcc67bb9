"""Format the values of reports as text."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mmcnb.errors import plain


def listed(listing: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of a text table with one row for each dictionary in ``listing``.

    All dictionaries must have the same keys. These become the header, in which the
    first key is replaced by "column".
    """
    if not listing:
        return
    rows = [["column", *list(listing[0])[1:]], *map(_cells, listing)]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(map(str.ljust, row, widths)).rstrip()


def _cells(entry: Mapping[str, Any]) -> list[str]:
    return ["" if cell is None else plain(words(cell)) for cell in entry.values()]


def table(rows: Mapping[str, Any]) -> Iterator[str]:
    """Format a mapping as aligned lines, with one line per entry.

    Parameters
    ----------
    rows : mapping
        Names and values. Entries with the value None are left out, and numbers with the
        word "bytes" in their name get a unit.

    Yields
    ------
    str
        The name and the value of one entry.
    """
    from mmcnb._config import format_bytes

    present = {name: value for name, value in rows.items() if value is not None}
    width = max(map(len, present), default=0)
    for name, value in present.items():
        text = format_bytes(value) if "bytes" in name.split("_") else words(value)
        yield f"{name.replace('_', ' '):<{width}}  {text}"


def checkpoint_in_words(folder: str, resumed: int) -> str:
    """Return a text with the checkpoint folder and the number of resumed passes."""
    from mmcnb.engine.checkpoint import recorded_passes

    if recorded_passes(folder) == 0:
        return f"{folder}; no passes are recorded, because the rows are in memory"
    return f"{folder}; {resumed} passes were resumed from this folder"


def warnings_elsewhere(model: str | None) -> str:
    """Return the end of a sentence that tells the user where to find more warnings."""
    if model is None:
        return "are printed with --json, under warnings"
    return f"are shown by `mmcnb info {shlex.quote(model)}`"


def words(value: object) -> str:
    """Format a value as text.

    Parameters
    ----------
    value : object
        A number, a bool, a string, or a sequence or mapping of such values.

    Returns
    -------
    str
        Text such as "1,024", "0.25", "yes" or "left, right".
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.5g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {words(entry)}" for key, entry in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(words, value))
    return str(value)
