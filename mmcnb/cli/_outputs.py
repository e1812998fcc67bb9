"""Outputs are checked before any work, and appear whole or not at all."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mmcnb.errors import InputError


@contextmanager
def whole_outputs(
    outputs: Sequence[str],
    sources: Sequence[str],
    overwrite: bool,
    labels: str | None = None,
    old: str = "",
) -> Iterator[list[str]]:
    """Give paths to write to beside the outputs; at the end all move to their places, or none does.

    Parameters
    ----------
    outputs : sequence of str
        Paths that will be written.
    sources : sequence of str
        Paths that are read, which no output may touch.
    overwrite : bool
        Whether a file or Zarr store that is there may be replaced.
    labels : str or None, default=None
        Path of one more output, the labels.
    old : str, default=""
        An output that is replaced whatever ``overwrite`` says.

    Yields
    ------
    list of str
        A path on the same disk for each output.

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
        outputs = [*outputs, labels]
    check_paths(outputs, sources)
    written = [AtomicOutput(output, overwrite or output == old) for output in outputs]
    with together(written):
        yield [str(output.path) for output in written]


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
        for other in (*sources, *outputs[:number]):
            one, two = (Path(os.path.realpath(path)) for path in (output, other))
            if one == two or one in two.parents or two in one.parents:
                raise InputError(
                    f"{output}: this output overlaps {other}; choose another path for it."
                )
