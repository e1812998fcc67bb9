"""``python -m mmcnb.datasets NAME --out NAME.zarr``: write a data set to a Zarr store."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any

from mmcnb import InputError

from . import Source, __doc__, registry, write
from ._registry import SYNTHETIC


def main(arguments: list[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : list of str or None, default=None
        Arguments after the command; None uses the arguments of the process.

    Returns
    -------
    int
        0, or 2 if the input cannot be used.
    """
    options = _parser().parse_args(arguments)
    try:
        source = Source(options.data_dir, options.base_url)
        if options.name == "list":
            _list(source, options.json)
        else:
            _write(options, source)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of the output closed it, as head does
        # Python flushes the output when it exits
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (InputError, OSError) as error:
        # Some errors have another message on the command line, which names an option.
        print(f"error: {getattr(error, 'command', error)}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"python -m {__package__}", description=__doc__
    )
    add = parser.add_argument
    add(
        "name",
        metavar="NAME",
        help="a data set, two digits such as mnist-1v7, or 'list'",
    )
    add("--out", metavar="PATH", help="the Zarr store to write")
    add(
        "--rows",
        type=int,
        metavar="N",
        help="number of rows to draw at random, or to generate of rings, moons, blobs or arcs",
    )
    add(
        "--features",
        type=int,
        metavar="D",
        help="number of features of rings, moons, blobs or arcs",
    )
    add(
        "--random-state",
        type=int,
        default=0,
        metavar="SEED",
        help="seed of random draws (default: 0)",
    )
    add(
        "--layout",
        choices=["dense", "csr"],
        help="layout of the rows (default: depends on the data set)",
    )
    add("--overwrite", action="store_true", help="replace a store that exists")
    add(
        "--data-dir",
        metavar="DIR",
        help="folder with the files (default: MMCNB_DATA_DIR)",
    )
    add(
        "--base-url",
        metavar="URL",
        help="server to download from instead of the publishers",
    )
    add("--json", action="store_true", help="print facts as JSON")
    return parser


def _list(source: Source, as_json: bool) -> None:
    facts = registry(source)
    if as_json:
        print(json.dumps(facts, indent=2))
        return
    print(f"{'name':<26}{'rows':>8}{'features':>10}  {'here':<6}classes")
    for fact in facts:
        here = "yes" if fact["found"] else "no"
        classes = _classes(fact["class_counts"])
        print(
            f"{fact['name']:<26}{fact['n_samples']:>8}{fact['n_features']:>10}  {here:<6}{classes}"
        )
    print(
        "Two digits of mnist, usps and optdigits are called mnist-1v7, optdigits-tes-3v8 and so on."
    )
    print(f"Synthetic, with --rows and --features: {', '.join(SYNTHETIC)}.")


def _write(options: argparse.Namespace, source: Source) -> None:
    if options.out is None:
        raise InputError(
            f"--out is missing; name the store to write, such as --out {options.name}.zarr."
        )
    facts = write(
        options.name,
        options.out,
        rows=options.rows,
        features=options.features,
        random_state=options.random_state,
        layout=options.layout,
        source=source,
        overwrite=options.overwrite,
    )
    if options.json:
        print(json.dumps(facts, indent=2))
        return
    print(
        f"{options.out}: {options.name}, {facts['n_samples']} rows x {facts['n_features']} features, "
        f"{facts['layout']}, {facts['dtype']}, classes {_classes(facts['class_counts'])}"
    )


def _classes(counts: dict[Any, int]) -> str:
    return ", ".join(f"{label}: {count}" for label, count in counts.items())


if __name__ == "__main__":
    sys.exit(main())
