"""Command line ``mmcnb``, whose commands are called verbs.

Each verb has a module with three functions: `add_arguments` adds its command-line
arguments, `run` returns a report, and `lines` formats the report as text. The module is
imported only when its verb is called, so that ``mmcnb --help`` and each verb import
only what they need.
"""

import argparse
import difflib
import json
import logging
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import mmcnb
from mmcnb._progress import lines_elsewhere
from mmcnb.cli._signals import StopSignals
from mmcnb.errors import OptionError, is_interrupt, one_line, plain

# Descriptions of the verbs, which ``--help`` shows.
VERBS = {
    "convert": "Convert a table (CSV, Parquet, Arrow), LIBSVM text, .npy, .npz or "
    "another store to a Zarr store with checksums.",
    "info": "Describe a store: shape, density, layout, codec, class counts, digest; "
    "the columns of a table; or a model with the warnings of its fit.",
    "verify": "Read a store back in full and compare it with its checksums.",
    "plan": "Estimate the reads, memory and files of a fit without running it.",
    "fit": "Cluster the rows of a table or a store; write the model, the labels, or "
    "the table with its clusters.",
    "predict": "Label the rows of a table or a store with a saved model.",
    "update": "Add the rows of a table or a store to a saved model; clusters keep "
    "their numbers.",
    "explain": "Explain what distinguishes the clusters: columns, typical rows, and a "
    "sentence for each cluster.",
    "report": "Write an HTML page about the clusters: trust, sentences, columns, a "
    "map, candidates and settings.",
    "score": "Compare clusters with known classes, and measure how well they separate "
    "the rows.",
    "demo": "Compare maximum margin clustering with k-means on handwritten digits, and "
    "on rings larger than the memory limit.",
    "doctor": "Check this installation, compile in advance, or find and remove "
    "leftovers of killed commands.",
}
# Names that other libraries or other verbs use for options, without the dashes. If a
# verb lacks the option, the synonym of that option is tried.
SYNONYMS = {
    "k": "--n-clusters",
    "clusters": "--n-clusters",
    "seed": "--random-state",
    "random-seed": "--random-state",
    "sep": "--delimiter",
    "separator": "--delimiter",
    "exclude": "--drop",
    "features": "--columns",
    "output": "--out",
    "out": "--table",
    "predictions": "--labels",
    "threads": "--jobs",
    "force": "--overwrite",
}
# These verbs move their outputs into place before the report is printed. They succeed
# even if the report cannot be printed, for example to a closed pipe.
WRITERS = ("convert", "fit", "predict", "update", "report")
# Exceptions that are reported as a one-line message. Other exceptions are bugs, and are
# reported with a traceback.
EXPECTED = (KeyboardInterrupt, SystemError, OSError, MemoryError, ValueError)
BAD_INPUT = 2
INTERRUPTED = 130  # 128 + SIGINT, the exit code that shells report


class _Parser(argparse.ArgumentParser):
    """Argument parser whose error messages are one sentence."""

    def error(self, message: str) -> NoReturn:
        sentence = f'{_sentence(message)}; see "{self.prog} --help".'
        self.exit(BAD_INPUT, f"{self.prog}: {sentence}\n")


class _VerbParser(_Parser):
    """Argument parser of a verb, which imports the module of the verb on first use."""

    verb = ""

    def options(self) -> list[str]:
        """Return the long options of the verb."""
        self._import_verb()
        return [option for option in self._option_string_actions if option[1] == "-"]

    def parse_known_args(self, *arguments: Any) -> Any:  # type: ignore[override]
        self._import_verb()
        return super().parse_known_args(*arguments)

    def _import_verb(self) -> None:
        if self.get_default("run") is None:
            module = import_module(f"mmcnb.cli.{self.verb}")
            module.add_arguments(self)
            self.add_argument(
                "--json",
                action="store_true",
                help="print one JSON object instead of sentences",
            )
            self.set_defaults(parser=self, run=module.run, lines=module.lines)


def build_parser() -> argparse.ArgumentParser:
    """Build the argument parser of the command line, including all verbs.

    Returns
    -------
    argparse.ArgumentParser
        Parser whose namespace contains ``verb`` (one of `VERBS`), the ``parser``,
        ``run`` and ``lines`` of the verb, and the arguments of the verb.
    """
    parser = _Parser(
        prog="mmcnb",
        description="Maximum margin clustering for data larger than memory.",
    )
    parser.add_argument(
        "--version", action="version", version=f"mmcnb {mmcnb.__version__}"
    )
    verbs = parser.add_subparsers(
        dest="verb", metavar="VERB", required=True, parser_class=_VerbParser
    )
    for verb, summary in VERBS.items():
        verbs.add_parser(
            verb, help=summary[:-1], description=summary, conflict_handler="resolve"
        ).verb = verb
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb.

    Parameters
    ----------
    argv : sequence of str, optional
        Command-line arguments, without the name of the program. By default, the
        arguments of the process are used.

    Returns
    -------
    int
        Exit code: 0 after success, 1 if a report that is the only output could not be
        printed, 2 if the input cannot be used, and 130 after an interrupt.
    """
    arguments = argparse.Namespace()
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # the stream is closed, as in a daemon
            _silence(name)
    signals = StopSignals(for_good=argv is None)
    try:
        with signals:
            _parse(argv, arguments)
            memory_limit = getattr(arguments, "memory_limit", None)
            limited: AbstractContextManager[object] = nullcontext()
            if memory_limit is not None:  # the limit also applies while rows are opened
                limited = mmcnb.config(memory_limit=memory_limit)
            with limited, lines_elsewhere(), warnings.catch_warnings():
                warnings.showwarning = _show_warning
                report = arguments.run(arguments)
            signals.done()
            if arguments.json:
                text = json.dumps(report, indent=2, default=_plain)
            else:
                text = "\n".join(map(plain, arguments.lines(report)))
            is_printed = _print(text, _stream_of_report(arguments))
            return 0 if is_printed or arguments.verb in WRITERS else 1
    except (KeyboardInterrupt, Exception) as error:
        stop: BaseException = error
        if signals.has_interrupted:
            # A library that is interrupted may raise another exception, such as
            # ImportError.
            stop = KeyboardInterrupt()
        elif not isinstance(error, EXPECTED):
            raise
        code, sentence = _ending(stop, getattr(arguments, "checkpoint", None))
        if code == INTERRUPTED and argv is None:
            # Otherwise, Zarr's event loop would log its unfinished tasks when the
            # process ends, even if the creation of the loop was interrupted.
            warnings.simplefilter("ignore")
            logging.getLogger("asyncio").disabled = True
            sys.unraisablehook = lambda unraisable: None
        _print(f"mmcnb: {_sentence(sentence)}", file="stderr")
        return code


def _parse(argv: Sequence[str] | None, arguments: argparse.Namespace) -> None:
    """Parse the command line, and exit with an error if an argument is unknown.

    The error message suggests options that may have been meant.
    """
    _, unknown = build_parser().parse_known_args(argv, arguments)
    for name, value in vars(arguments).items():
        # A shell does not expand ~ in --option=~/path.
        if isinstance(value, str) and value.startswith("~/"):
            from mmcnb.samples.paths import expanded

            setattr(arguments, name, expanded(value))
    if unknown:
        parser = arguments.parser
        options = parser.options()
        meant: list[str] = []
        hints: list[str] = []
        for word in unknown:
            if not word.startswith("-"):
                continue
            name = word.lstrip("-").partition("=")[0].replace("_", "-").lower()
            synonym = _synonym(name, options)
            verbs = [] if synonym else _verbs_with(f"--{name}")
            if synonym:
                meant.append(synonym)
            elif verbs:
                others = ", ".join(verbs)
                hints.append(f"--{name} is an option of other verbs only ({others})")
            else:
                meant += difflib.get_close_matches(f"--{name}", options, 1, cutoff=0.75)
        if meant:
            hints.append(f"perhaps {' and '.join(dict.fromkeys(meant))} is meant")
        if not hints:
            hints.append(f"its options are {', '.join(options)}")
        fault = f"unrecognized arguments: {' '.join(unknown)}"
        parser.error("; ".join([fault, *hints]))


def _synonym(name: str, options: Sequence[str]) -> str:
    """Return the option of a verb that has another name elsewhere, or an empty text."""
    option = SYNONYMS.get(name, "")
    while option and option not in options:
        option = SYNONYMS.get(option.removeprefix("--"), "")
    return option


def _verbs_with(option: str) -> list[str]:
    """Return the verbs that have an option."""
    verbs = []
    for verb in VERBS:
        parser = _VerbParser(conflict_handler="resolve")
        parser.verb = verb
        if option in parser.options():
            verbs.append(verb)
    return verbs


def _stream_of_report(arguments: argparse.Namespace) -> str:
    """Return the name of the stream to which the report is printed.

    If labels or a table are printed to standard output, the report is printed to
    standard error.
    """
    printed = (getattr(arguments, name, None) for name in ("labels", "table"))
    return "stderr" if "-" in printed else "stdout"


def _print(text: str, file: str = "stdout") -> bool:
    """Print a text to a standard stream, and return whether printing succeeded."""
    try:
        print(text, file=getattr(sys, file), flush=True)
    except OSError:  # the other end of the pipe is closed, or the disk is full
        _silence(file)  # otherwise, Python would report the error again at exit
        return False
    return True


def _silence(file: str) -> None:
    """Redirect a standard stream to the null device."""
    setattr(sys, file, Path(os.devnull).open("w"))  # noqa: SIM115  it stays open


def _sentence(text: object) -> str:
    """Return a message as one line, with terminal control characters escaped."""
    return plain(" ".join(str(text).split()))


def _ending(error: BaseException, checkpoint: str | None) -> tuple[int, str]:
    """Return the exit code and the message for a command that failed.

    Parameters
    ----------
    error : exception
        Exception that ended the command.
    checkpoint : str or None
        Checkpoint folder of the command, from which it can be resumed.
    """
    if is_interrupt(error):
        advice = "nothing half-written was left behind"
        if checkpoint is not None and Path(checkpoint).is_dir():
            advice = f"run the same command again to resume from {checkpoint}"
        return INTERRUPTED, f"stopped by the user; {advice}."
    if isinstance(error, SystemError):
        raise error
    return BAD_INPUT, _reason(error)


def _reason(error: BaseException) -> str:
    """Return a message that explains an exception and suggests a remedy."""
    if isinstance(error, MemoryError):
        return f"memory ran out ({one_line(error)}); give a smaller --memory-limit."
    if isinstance(error, OptionError):
        return error.command
    if not isinstance(error, OSError):
        return str(error)
    from mmcnb.stores.atomic import DISK_FULL

    if error.errno in DISK_FULL:
        place = f" while writing {error.filename}" if error.filename else ""
        return (
            f"the disk is full{place}; "
            "free some space or choose a folder on another disk."
        )
    place = error.filename or "a file could not be read or written"
    return f"{place}: {one_line(error)}; check the path, its permissions and its disk."


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    _print(f"mmcnb: warning: {_sentence(message)}", file="stderr")


def _plain(value: Any) -> Any:
    """Convert a NumPy number, an array or a path to a type that JSON supports."""
    return value.tolist() if hasattr(value, "tolist") else str(value)
