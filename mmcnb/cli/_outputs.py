"""Check the outputs of a command before it starts, and write all of them or none."""

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from mmcnb.errors import InputError

STANDARD_OUTPUT = "-"  # path that means standard output


class Outputs(NamedTuple):
    """Temporary paths to which a command writes its outputs.

    Attributes
    ----------
    output, labels, table : str or None
        Temporary path of the model or page, of the labels, and of the table. None means
        that the output is not written.
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
    """Yield temporary paths for outputs, and move all outputs into place at the end.

    If the ``with`` block raises an exception, no output is written.

    Parameters
    ----------
    sources : sequence of str
        Paths that the command reads. Outputs must not overlap these paths.
    overwrite : bool
        Whether existing files and Zarr stores may be replaced.
    output : str or None, default=None
        Path of the model or page. None means that it is not written.
    labels, table : str or None, default=None
        Path of the labels, and path of the table. None means that the output is not
        written. One of the paths may be "-", which prints CSV to standard output.
    replaced : str or None, default=None
        Path of an output that may be replaced even if ``overwrite`` is False.

    Yields
    ------
    Outputs
        Temporary paths of the outputs.

    Raises
    ------
    InputError
        If a path exists, overlaps another path, or is in a folder that is not
        writable, or if the path of the labels or the table has an unsupported
        extension.
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
            # Keep a slash at the end of the path, which means that the table is a
            # folder of Parquet files.
            asides[path] = f"{file.path}{'/' * path.endswith('/')}"
        yield Outputs(asides.get(output), asides.get(labels), asides.get(table))


def _check_tables(labels: str | None, table: str | None) -> None:
    """Raise InputError if a file extension of the labels or the table is unsupported.

    An error is also raised if both would be printed to standard output.
    """
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
    """Yield the path of a temporary CSV file, which is printed on leaving the context.

    If ``is_printed`` is False, the path is an empty string, and nothing is printed.
    """
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
            except BrokenPipeError:  # the reading program, such as head, has ended
                sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115


def check_paths(outputs: Sequence[str], sources: Sequence[str]) -> None:
    """Raise InputError if an output overlaps a source or another output.

    Two paths overlap if they are the same or if one contains the other.

    Parameters
    ----------
    outputs : sequence of str
        Paths that the command writes.
    sources : sequence of str
        Paths that the command reads.
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
