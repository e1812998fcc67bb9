"""Values in words."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mmcnb.errors import plain


def listed(listing: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Word rows of one kind as a table with a header."""
    if not listing:
        return
    rows = [["column", *list(listing[0])[1:]]]
    rows += [
        ["" if cell is None else plain(words(cell)) for cell in row.values()]
        for row in listing
    ]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(
            f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)
        ).rstrip()


def table(rows: Mapping[str, Any]) -> Iterator[str]:
    """Word a mapping as aligned lines, without values of None; bytes have a unit.

    Parameters
    ----------
    rows : mapping
        Names and values.

    Yields
    ------
    str
        One line an entry.
    """
    from mmcnb._config import format_bytes

    shown = {name: value for name, value in rows.items() if value is not None}
    width = max(map(len, shown), default=0)
    for name, value in shown.items():
        text = format_bytes(value) if "bytes" in name.split("_") else words(value)
        yield f"{name.replace('_', ' '):<{width}}  {text}"


def words(value: Any) -> str:
    """Word one value for people.

    Parameters
    ----------
    value : object
        A number, a truth value, a text, or a sequence or mapping of these.

    Returns
    -------
    str
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
