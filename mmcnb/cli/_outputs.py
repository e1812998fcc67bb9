"""Check outputs before a command starts, and write them completely or not at all."""

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from mmcnb.errors import InputError

STANDARD_OUTPUT = "-"  # this path prints the labels or the table


class Outputs(NamedTuple):
    """The temporary paths of a command's outputs.

    Attributes
    ----------
    output, labels, table : str or None
        Temporary path on the same disk as the destination; None for an output that is
        not written.
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
    """Yield temporary paths to write to, and move all outputs into place at the end.

    If the ``with`` block raises an error, no output is written.

    Parameters
    ----------
    sources : sequence of str
        Paths that the command reads. Outputs must not overlap these paths.
    overwrite : bool
        Whether existing files and Zarr stores may be replaced.
    output : str or None, default=None
        Path of the model or the page to write.
    labels, table : str or None, default=None
        Paths of the labels and of the table to write. One of these paths may be "-",
        which prints CSV to standard output.
    replaced : str or None, default=None
        An output that may be replaced even if ``overwrite`` is False.

    Yields
    ------
    Outputs
        The temporary paths of the outputs.

    Raises
    ------
    InputError
        If a path exists, overlaps another path, or is in a folder that is not
        writable, or if the labels or the table have an unknown file ending.
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
            # With a slash at the end of its path, the table is a folder of files.
            asides[path] = f"{file.path}{'/' * path.endswith('/')}"
        yield Outputs(asides.get(output), asides.get(labels), asides.get(table))


def _check_tables(labels: str | None, table: str | None) -> None:
    """Raise InputError if a file ending is unknown or two tables would be printed."""
    if labels == table == STANDARD_OUTPUT:
        raise InputError(
            "--labels - and --table - would both be printed; give a path for one of "
            "them."
        )
    if labels not in (None, STANDARD_OUTPUT):
        from mmcnb.stores.label_table import is_table

        is_table(labels)
    if table not in (None, STANDARD_OUTPUT):
        from mmcnb.stores.joined_table import table_kind

        table_kind(table)


@contextmanager
def _printed_file(is_printed: bool) -> Iterator[str]:
    """Yield the path of a temporary CSV file, and print the file at the end."""
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
            except BrokenPipeError:  # a program such as head has closed the pipe
                sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115


def check_paths(outputs: Sequence[str], sources: Sequence[str]) -> None:
    """Raise InputError if writing an output would destroy an input.

    Parameters
    ----------
    outputs, sources : sequence of str
        Paths that the command writes, and paths that it reads.

    Raises
    ------
    InputError
        If an output is the same path as a source or another output, or one contains the
        other.
    """
    for number, output in enumerate(outputs):
        written = Path(os.path.realpath(output))
        for other in (*sources, *outputs[:number]):
            path = Path(os.path.realpath(other))
            if written == path or written in path.parents or path in written.parents:
                relation = "is inside"
                if written == path:
                    relation = "would replace"
                elif written in path.parents:
                    relation = "contains"
                kind = "input" if other in sources else "output"
                raise InputError(
                    f"the output {output} {relation} the {kind} {other}; "
                    "choose another path for it."
                )
