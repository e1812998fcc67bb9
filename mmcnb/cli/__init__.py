"""The command line.

One file a verb, each with `add_arguments`, `run`, which returns a report, and `lines`,
which words it. Nothing heavy is imported before a verb runs, so that ``mmcnb --help``
is quick.
"""

import argparse
import json
import logging
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import mmcnb
from mmcnb._progress import lines_elsewhere
from mmcnb.cli import (
    convert,
    demo,
    doctor,
    explain,
    fit,
    info,
    plan,
    predict,
    report,
    score,
    update,
    verify,
)
from mmcnb.cli._signals import StopSignals
from mmcnb.errors import is_interrupt, one_line, plain

VERBS: dict[str, Any] = {
    verb.__name__.rpartition(".")[2]: verb
    for verb in (
        convert,
        info,
        verify,
        plan,
        fit,
        predict,
        update,
        explain,
        report,
        score,
        demo,
        doctor,
    )
}
WRITERS = (
    "convert",
    "fit",
    "predict",
    "update",
    "report",
)  # their outputs are in place when they report
BAD_INPUT = 2
INTERRUPTED = 130  # 128 + SIGINT, as shells report it


class _Parser(argparse.ArgumentParser):
    """A parser whose complaint is one sentence."""

    def error(self, message: str) -> NoReturn:
        self.exit(
            BAD_INPUT, f'{self.prog}: {_sentence(message)}; see "{self.prog} --help".\n'
        )


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of every verb.

    Returns
    -------
    argparse.ArgumentParser
        Its namespace has ``verb``, one of `VERBS`, its ``parser`` and the verb's own
        arguments.
    """
    parser = _Parser(
        prog="mmcnb",
        description="Maximum margin clustering for data larger than memory.",
    )
    parser.add_argument(
        "--version", action="version", version=f"mmcnb {mmcnb.__version__}"
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for name, verb in VERBS.items():
        summary = verb.__doc__.partition("\n")[0]
        sub = verbs.add_parser(
            name, help=summary[:-1], description=summary, conflict_handler="resolve"
        )
        verb.add_arguments(sub)
        sub.add_argument(
            "--json",
            action="store_true",
            help="print one JSON object instead of sentences",
        )
        sub.set_defaults(parser=sub)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after the program's name; those of the process when left out.

    Returns
    -------
    int
        Exit code: 0 done, 2 input that cannot be used, 130 interrupted.
    """
    arguments = argparse.Namespace()
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed, as under a daemon
            _silence(name)
    try:
        with StopSignals(for_good=argv is None) as signals:
            _, unknown = build_parser().parse_known_args(argv, arguments)
            if unknown:
                options = [
                    option
                    for option in arguments.parser._option_string_actions
                    if option[1] == "-"
                ]
                fault = f"unrecognized arguments: {' '.join(unknown)}"
                arguments.parser.error(f"{fault}; its options are {', '.join(options)}")
            verb = VERBS[arguments.verb]
            with lines_elsewhere(), warnings.catch_warnings():
                warnings.showwarning = _show_warning
                report = verb.run(arguments)
            signals.done()
            as_json = (
                (json.dumps(report, indent=2, default=_plain),)
                if arguments.json
                else ()
            )
            told = as_json or map(plain, verb.lines(report))
            return _printed(*told, is_all=arguments.verb not in WRITERS)
    except (KeyboardInterrupt, SystemError, OSError, MemoryError, ValueError) as error:
        code, sentence = _ending(error, getattr(arguments, "checkpoint", None))
        if code == INTERRUPTED and argv is None:
            # As the process ends, Zarr's event loop would complain of its unfinished
            # work.
            warnings.simplefilter("ignore")
            logging.getLogger("asyncio").disabled = True
            sys.unraisablehook = lambda unraisable: (
                None
            )  # of a loop that was only half made
        _printed(f"mmcnb: {_sentence(sentence)}", file="stderr")
        return code


def _printed(*lines: str, is_all: bool = True, file: str = "stdout") -> int:
    """Print some lines; 1 if they are all that a command gives and cannot be printed, otherwise 0."""
    try:
        print(*lines, sep="\n", file=getattr(sys, file), flush=True)
    except OSError:  # its reader went away, or the disk is full
        _silence(file)  # otherwise Python complains again as it ends
        return int(is_all)
    return 0


def _silence(file: str) -> None:
    """Let a standard stream lead nowhere."""
    setattr(sys, file, Path(os.devnull).open("w"))  # noqa: SIM115  it stays open


def _sentence(text: object) -> str:
    """A message on one line that no terminal obeys."""
    return plain(" ".join(str(text).split()))


def _ending(error: BaseException, checkpoint: str | None) -> tuple[int, str]:
    """The exit code of a command that an error ended, and the sentence that says why."""
    if is_interrupt(error):
        again = "nothing half-written was left behind"
        if checkpoint is not None and Path(checkpoint).is_dir():
            again = f"run the same command again to go on from {checkpoint}"
        return INTERRUPTED, f"stopped by the user; {again}."
    if isinstance(error, SystemError):
        raise error
    if isinstance(error, MemoryError):
        return (
            BAD_INPUT,
            f"memory ran out ({one_line(error)}); give a smaller --memory-limit.",
        )
    if not isinstance(error, OSError):
        return BAD_INPUT, str(error)
    from mmcnb.stores.atomic import DISK_FULL

    if error.errno in DISK_FULL:
        place = f" while writing {error.filename}" if error.filename else ""
        return (
            BAD_INPUT,
            f"the disk is full{place}; free some space or choose a folder on another disk.",
        )
    fault = (
        f"{error.filename or 'a file could not be read or written'}: {one_line(error)}"
    )
    return BAD_INPUT, f"{fault}; check the path, its permissions and its disk."


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    _printed(f"mmcnb: warning: {_sentence(message)}", file="stderr")


def _plain(value: Any) -> Any:
    """Make numpy numbers and arrays, and paths, plain for JSON."""
    return value.tolist() if hasattr(value, "tolist") else str(value)
