"""Outputs are checked before any work, and appear whole or not at all."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mmcnb.errors import InputError


@contextmanager
def whole_outputs(
    sources: Sequence[str],
    overwrite: bool,
    output: str | None = None,
    labels: str | None = None,
    replaced: str | None = None,
) -> Iterator[tuple[str | None, str | None]]:
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
    labels : str or None, default=None
        Path of the labels that will be written.
    replaced : str or None, default=None
        An output that is replaced whatever ``overwrite`` says.

    Yields
    ------
    output, labels : str or None
        A path on the same disk for each; None if it is not written.

    Raises
    ------
    InputError
        If a path exists, overlaps another one, or lies in a folder that cannot be
        written, or the ending of the labels is unknown.
    """
    from mmcnb.stores.atomic import AtomicOutput, together

    if labels is not None:
        from mmcnb.stores.label_table import is_table

        is_table(labels)  # refuses other endings
    paths = [path for path in (output, labels) if path is not None]
    check_paths(paths, sources)
    written = {
        path: AtomicOutput(path, overwrite or path == replaced) for path in paths
    }
    with together(list(written.values())):
        asides: dict[str | None, str] = {
            path: str(file.path) for path, file in written.items()
        }
        yield asides.get(output), asides.get(labels)


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
