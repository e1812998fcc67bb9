"""Translate the options in messages from the command line to Python."""

import csv
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields

from mmcnb.errors import InputError, OptionError
from mmcnb.tables.options import LISTS, TableOptions

_NAMES = [field.name for field in fields(TableOptions)] + ["encoding", "order"]
_OPTION = "--(" + "|".join(name.replace("_", "-") for name in _NAMES) + ")"
# An option with its value. The value ends before the punctuation of the sentence.
_WORD = r"""(?:'[^']*'|"[^"]*"|[^\s;'"])+?"""  # a word, quoted for a shell
_WITH_VALUE = re.compile(rf"{_OPTION}[ =]({_WORD})(?=(?:\)[,;.]*|[,;.]?)(?:\s|$))")
# A Python argument, followed by the command-line option in parentheses.
_BOTH = re.compile(r"(\w+=(?:\[[^\]]*\]|\{[^}]*\}|'[^']*').*?) \(--[^()]*\)")
_ALONE = re.compile(_OPTION)


def options_in_python(sentence: str) -> str:
    """Return the command-line options in a message as Python arguments.

    Options that belong together are joined by "with", and alternatives by "or".

    Parameters
    ----------
    sentence : str
        A message that contains command-line options.

    Examples
    --------
    >>> from mmcnb.tables.remedies import options_in_python
    >>> options_in_python("correct it, or pass --skip-lines 1 with --header no")
    "skip_lines=1 with header='no'"
    >>> options_in_python("pass --decimal ',', or leave it out with --drop pay.")
    "decimal=',' or drop=['pay']"
    """
    sentence = _BOTH.sub("", sentence)
    text = ""
    end = 0
    for option in _WITH_VALUE.finditer(sentence):
        argument = _argument(option)
        if text and sentence[end : option.start()] == " with ":
            text += f" with {argument}"
        elif text and argument not in text:
            text += f" or {argument}"
        elif not text:
            text = argument
        end = option.end()
    return text


def in_python(sentence: str) -> str:
    """Return a message with Python arguments in place of command-line options.

    Parameters
    ----------
    sentence : str
        A message that contains command-line options.

    Examples
    --------
    >>> from mmcnb.tables.remedies import in_python
    >>> in_python("pass --decimal ',', or leave it out (--drop)")
    "pass decimal=',', or leave it out (drop)"
    """
    sentence = _BOTH.sub(r"\1", sentence)
    sentence = _WITH_VALUE.sub(_argument, sentence)
    return _ALONE.sub(lambda option: _name(option[1]), sentence)


def _name(option: str) -> str:
    return "orders" if option == "order" else option.replace("-", "_")


def _argument(option: re.Match[str]) -> str:
    """Convert a matched command-line option to an argument of `mmcnb.read_table`."""
    name = _name(option[1])
    value = "".join(shlex.split(option[2]))
    if name == "orders":
        column, _, texts = value.partition("=")
        return f"orders={ {column: texts.split(',')} }"
    if name == "na_values":  # separated by commas on the command line
        return f"{name}={next(csv.reader([value]))}"
    if name in LISTS:
        return f"{name}={[value]}"
    if name == "skip_lines":
        return f"{name}={value}"
    return f"{name}={value!r}"


@contextmanager
def options_of_files() -> Iterator[None]:
    """Append the Python arguments to messages that name command-line options.

    Files can be read from the command line and from Python, so messages show both
    forms.
    """
    try:
        yield
    except InputError as error:
        arguments = options_in_python(str(error))
        if not arguments or "mmcnb.read_table" in str(error):
            raise
        sentence = str(error).removesuffix(".")
        raise OptionError(
            f"{sentence}; in Python, mmcnb.read_table takes {arguments}.",
            command=str(error),
        ) from error


@contextmanager
def options_of_frames() -> Iterator[None]:
    """Replace command-line options in messages by Python arguments.

    Data frames exist only in Python, so command-line options cannot be applied to them.
    """
    try:
        yield
    except InputError as error:
        if _ALONE.search(str(error)) is None:
            raise
        sentence = in_python(str(error))
        if "=" in sentence:
            sentence = sentence.removesuffix(".")
            sentence += "; mmcnb.read_table(X, ...) takes these options."
        raise InputError(sentence) from error
