"""Check whether the files of a folder belong together, and find missing columns."""

import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from mmcnb.errors import InputError

MOST_SHOWN = 10  # maximum number of names in a sentence, and of sentences
# Spaces and underscores, except between digits: x_1_1 is not x_11.
SEPARATORS = re.compile(r"(?<!\d)[\s_]+|[\s_]+(?!\d)")


def refuse_other_spellings(paths: Sequence[Path], keys: Sequence[list[str]]) -> None:
    """Raise InputError if a column seems to be spelled differently in another file.

    Two spellings that occur in the same file are accepted as different columns.

    Parameters
    ----------
    paths : sequence of Path
        The files.
    keys : sequence of list of str
        Names of the columns of each file.
    """
    spellings: dict[str, dict[str, set[int]]] = {}
    for number, names in enumerate(keys):
        for name in names:
            files_of = spellings.setdefault(_folded(name), {})
            files_of.setdefault(name, set()).add(number)
    for files_of in spellings.values():
        (first, first_files), *others = files_of.items()
        for other, other_files in others:
            with_first_only = first_files - other_files
            with_other_only = other_files - first_files
            if with_first_only and with_other_only:
                raise InputError(
                    f"{paths[min(with_first_only)]} has a column {first!r}, and "
                    f"{paths[min(with_other_only)]} has {other!r}, which differs only "
                    "in case, spaces or underscores: rename one of these columns, so "
                    "that both files have the same name."
                )


def _folded(name: str) -> str:
    """Return a name in folded case, without spaces and underscores."""
    return SEPARATORS.sub("", unicodedata.normalize("NFKC", name)).casefold()


def refuse_unrelated_files(paths: Sequence[Path], keys: Sequence[list[str]]) -> None:
    """Raise InputError if a file shares few columns with the widest file.

    A file is refused if at most half of its columns occur in the widest file. Files
    that should be joined row by row on a common key column are therefore refused as
    well.

    Parameters
    ----------
    paths : sequence of Path
        The files.
    keys : sequence of list of str
        Names of the columns of each file.
    """
    widest = max(range(len(keys)), key=lambda number: len(keys[number]))
    names = set(keys[widest])
    for path, own in zip(paths, keys, strict=True):
        n_common = len(names.intersection(own))
        if own and 2 * n_common <= len(own):
            shared = f"only {n_common}"
            if n_common == 0:
                shared = "none"
            raise InputError(
                f"{path} has {_columns(own)}, and {paths[widest]} has "
                f"{_columns(keys[widest])}; they share {shared} of these names and "
                "are not parts of one table: pass one of the files, or a folder whose "
                "files have the same columns."
            )


def notes_on_lacking(paths: Sequence[Path], keys: Sequence[list[str]]) -> list[str]:
    """Return sentences about columns that are missing in some files.

    Parameters
    ----------
    paths : sequence of Path
        The files.
    keys : sequence of list of str
        Names of the columns of each file.
    """
    n_files_with: dict[str, int] = {}
    for names in keys:
        for name in names:
            n_files_with[name] = n_files_with.get(name, 0) + 1
    partial = [name for name, count in n_files_with.items() if count < len(keys)]
    columns_lacking: dict[tuple[int, ...], list[str]] = {}
    own_names = list(map(set, keys))
    for name in partial:
        lacking = [number for number, own in enumerate(own_names) if name not in own]
        columns_lacking.setdefault(tuple(lacking), []).append(name)
    notes = []
    for numbers, names in columns_lacking.items():
        files = str(paths[numbers[0]])
        verb = "has"
        if len(numbers) > 1:
            more = len(numbers) - 1
            files += f" and {more} more file{'s' if more > 1 else ''}"
            verb = "have"
        notes.append(
            f"{files} {verb} no {_columns(names)}, which other files of the folder "
            f"have: {'its' if len(names) == 1 else 'their'} cells are missing values "
            "there."
        )
    if len(notes) > MOST_SHOWN:
        more = len(notes) - MOST_SHOWN
        notes = notes[:MOST_SHOWN]
        notes.append(f"Other columns are missing in {more} more groups of files.")
    return notes


def _columns(names: Sequence[str]) -> str:
    """Return up to ten column names, and the number of other names, for a sentence."""
    shown = list(map(repr, names[:MOST_SHOWN]))
    if len(names) > MOST_SHOWN:
        shown.append(f"{len(names) - MOST_SHOWN} more")
    listed = shown[-1]
    if len(shown) > 1:
        listed = f"{', '.join(shown[:-1])} and {shown[-1]}"
    return f"{'column' if len(names) == 1 else 'columns'} {listed}"
