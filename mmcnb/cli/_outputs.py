"""Outputs are checked before any work, and appear whole or not at all."""

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from mmcnb.errors import InputError

STANDARD_OUTPUT = "-"  # the path of labels or of a table that are printed


class Outputs(NamedTuple):
    """Where a command writes before its outputs move to their places.

    Attributes
    ----------
    output, labels, table : str or None
        A path on the same disk for each; None if it is not written.
    """

    output: str | None
    labels: str | None
    table: str | None


@contextmanager
def whole_outputs(
    sources: Sequence[str],
    overwrite: bool,
    output: str | None = None,
    labels: str | None = None,
    table: str | None = None,
    replaced: str | None = None,
) -> Iterator[Outputs]:
    """Give paths to write to beside the outputs, which move to their places together.

    If the block raises, no output appears.

    Parameters
    ----------
    sources : sequence of str
        Paths that are read, which no output may touch.
    overwrite : bool
        Whether a file or Zarr store that is there may be replaced.
    output : str or None, default=None
        Path of the model or the page that will be written.
    labels, table : str or None, default=None
        Paths of the labels and of the table that will be written; one of them may be
        "-", standard output.
    replaced : str or None, default=None
        An output that is replaced whatever ``overwrite`` says.

    Yields
    ------
    Outputs

    Raises
    ------
    InputError
        If a path exists, overlaps another one, or lies in a folder that cannot be
        written, or the ending of the labels or of the table is unknown.
    """
    from mmcnb.stores.atomic import AtomicOutput, together

    _check_tables(labels, table)
    paths = []
    for path in (output, labels, table):
        if path not in (None, STANDARD_OUTPUT):
            paths.append(path)
    check_paths(paths, sources)
    written = {
        path: AtomicOutput(path, overwrite or path == replaced) for path in paths
    }
    with (
        _printed_file(STANDARD_OUTPUT in (labels, table)) as printed,
        together(list(written.values())),
    ):
        asides: dict[str | None, str] = {STANDARD_OUTPUT: printed}
        for path, file in written.items():
            # The end of the path says that a table is a folder.
            asides[path] = f"{file.path}{'/' * path.endswith('/')}"
        yield Outputs(asides.get(output), asides.get(labels), asides.get(table))


def _check_tables(labels: str | None, table: str | None) -> None:
    """Refuse endings of unknown formats, and two tables on standard output."""
    if labels == table == STANDARD_OUTPUT:
        raise InputError(
            "--labels - and --table - would both be printed; give one of them a path."
        )
    if labels not in (None, STANDARD_OUTPUT):
        from mmcnb.stores.label_table import is_table

        is_table(labels)
    if table not in (None, STANDARD_OUTPUT):
        from mmcnb.stores.joined_table import table_kind

        table_kind(table)


@contextmanager
def _printed_file(is_printed: bool) -> Iterator[str]:
    """Give the path of a CSV file that is printed at the end if it is wanted."""
    if not is_printed:
        yield ""
        return
    with TemporaryDirectory(prefix="mmcnb-") as folder:
        path = Path(folder, "printed.csv")
        yield str(path)
        with path.open("rb") as file:
            try:
                shutil.copyfileobj(file, sys.stdout.buffer)
                sys.stdout.flush()
            except BrokenPipeError:  # such as of head, which has read enough
                sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115


def check_paths(outputs: Sequence[str], sources: Sequence[str]) -> None:
    """Refuse outputs that would destroy inputs.

    Parameters
    ----------
    outputs, sources : sequence of str
        Paths that are written, and read.

    Raises
    ------
    InputError
        If an output overlaps another path.
    """
    for number, output in enumerate(outputs):
        written = Path(os.path.realpath(output))
        for other in (*sources, *outputs[:number]):
            path = Path(os.path.realpath(other))
            if written == path or written in path.parents or path in written.parents:
                raise InputError(
                    f"{output}: this output overlaps {other}; "
                    "choose another path for it."
                )
