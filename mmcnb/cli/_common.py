"""What several verbs share: their arguments, and how numbers are worded."""

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

EXACT = 5  # significant digits of a number shown to people


OPTIONS: dict[str, dict[str, Any]] = {
    "element": {
        "help": 'element of the store that holds the rows, such as "X" or "layers/counts" (default: X)'
    },
    "labels": {
        "metavar": "OUT",
        "help": "where the labels are written: OUT.csv or OUT.parquet with the row, its cluster, margin and "
        "confidence, or a Zarr array of one integer a row, from 0",
    },
    "overwrite": {"action": "store_true", "help": "replace outputs that exist"},
    "memory-limit": {
        "metavar": "SIZE",
        "help": 'resident memory of the whole process, such as "512MiB" (default: a share of what is free)',
    },
    "jobs": {
        "type": int,
        "dest": "n_jobs",
        "metavar": "N",
        "help": "threads to work with (default: one a core)",
    },
    "dask": {
        "dest": "engine",
        "metavar": "ADDRESS",
        "help": 'cluster to work on: the address of a Dask scheduler, such as "tcp://host:8786", or '
        '"local:4" for four processes on this machine (default: threads of this process)',
    },
}


def add_options(parser: argparse.ArgumentParser, *names: str, **more: Any) -> None:
    """Add some of the options that several verbs have."""
    for name in names:
        parser.add_argument(f"--{name}", **OPTIONS[name] | more)


def add_store(parser: argparse.ArgumentParser, **options: Any) -> None:
    """Add the argument STORE and its ``--element``."""
    parser.add_argument(
        "store", metavar="STORE", help="Zarr store or table of numbers that holds the rows", **options
    )
    add_options(parser, "element")


def table(rows: Mapping[str, Any]) -> Iterator[str]:
    """Word a mapping as aligned lines; what is None is left out, and bytes have a unit.

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
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.{EXACT}g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {words(entry)}" for key, entry in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(words, value))
    return str(value)
