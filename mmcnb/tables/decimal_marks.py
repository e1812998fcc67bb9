"""Handle folders in which some files have decimal commas and others decimal points.

Such folders arise if a table is exported on computers with different locales. Each file
is read with its own decimal mark: if this mark differs from the expected mark, points
and commas in the numbers of the file are exchanged before any other step.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from mmcnb._fit_warnings import Importance, Note
from mmcnb.tables.arrow import TEXT
from mmcnb.tables.numbers import LOOSE_BODY, cell_pattern
from mmcnb.tables.options import TableOptions

# A point before exactly three digits could separate thousands; any other point is a
# decimal point.
CERTAIN_POINT = r"\.(?:\d{1,2}|\d{4,})(?:\D|$)|(?:^|\D)0?\.\d|,\d+\."
LOOSE_NUMBER = cell_pattern(LOOSE_BODY)
NAMES = {".": "point", ",": "comma"}
MOST_SHOWN = 10  # maximum number of columns in a sentence


def has_certain_point(texts: pa.Array) -> bool:
    """Return whether any number in texts certainly has a decimal point.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from mmcnb.tables.decimal_marks import has_certain_point
    >>> has_certain_point(pa.array(["1.5"])), has_certain_point(pa.array(["1.500"]))
    (True, False)
    """
    return bool(pc.any(pc.match_substring_regex(texts, CERTAIN_POINT)).as_py())


def with_marks_exchanged(texts: pa.Array) -> pa.Array:
    """Return texts with the points and commas of numbers exchanged.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from mmcnb.tables.decimal_marks import with_marks_exchanged
    >>> texts = pa.array(["1.234,5 kg", "a,b"], pa.large_string())
    >>> with_marks_exchanged(texts).to_pylist()
    ['1,234.5 kg', 'a,b']
    """
    texts = texts.cast(TEXT)
    trimmed = pc.utf8_trim_whitespace(texts)
    is_number = pc.match_substring_regex(trimmed, LOOSE_NUMBER)
    exchanged = pc.replace_substring(texts, ",", "\x1f")
    exchanged = pc.replace_substring(exchanged, ".", ",")
    exchanged = pc.replace_substring(exchanged, "\x1f", ".")
    return pc.if_else(is_number, exchanged, texts)


def marks_of_file(certain: Mapping[str, str]) -> dict[str, str]:
    """Return the decimal mark of each column of numbers of a file.

    A column without a certain mark gets the mark of the other columns, if they all have
    the same mark.

    Parameters
    ----------
    certain : mapping of str to str
        Decimal mark of each column of numbers, or ``""`` if its first cells do not
        determine the mark.
    """
    marks = set(certain.values()) - {""}
    common = marks.pop() if len(marks) == 1 else ""
    return {key: mark or common for key, mark in certain.items()}


def expected_marks(
    marks: Sequence[Mapping[str, str]], options: TableOptions
) -> dict[str, str]:
    """Return the decimal mark to which the numbers of each column are converted.

    For new rows of a fitted model, this is the decimal mark of the fit. In a fit,
    columns that have different marks in different files are converted to decimal
    points, and other columns are not converted. If options specify the decimal mark or
    the thousands separator, a fit does not convert any column.

    Parameters
    ----------
    marks : sequence of mapping of str to str
        The result of `marks_of_file` for each file.
    options : TableOptions
    """
    if options.encoding is not None:
        expected = {}
        for column in options.encoding.columns:
            if column.kind == "number":
                form = column.form
                expected[column.name] = form.decimal if form else options.decimal
        return expected
    if options.decimal != "." or options.thousands is not None:
        return {}
    found: dict[str, set[str]] = {}
    for of_file in marks:
        for key, mark in of_file.items():
            found.setdefault(key, set()).add(mark)
    return {key: "." for key, of_key in found.items() if of_key >= {".", ","}}


def notes_on_marks(
    paths: Sequence[Path],
    marks: Sequence[Mapping[str, str]],
    expected: Mapping[str, str],
) -> list[str]:
    """Return a sentence about the files in which marks are exchanged, if there are any.

    Parameters
    ----------
    paths : sequence of Path
        The files.
    marks : sequence of mapping of str to str
        For each file, the decimal mark of each column of numbers, or ``""`` if the
        first cells do not determine the mark.
    expected : mapping of str to str
        Decimal mark to which the numbers of each column are converted.
    """
    others = []
    columns: dict[str, str] = {}
    for path, of_file in zip(paths, marks, strict=True):
        own = {key: of_file[key] for key in keys_to_exchange(of_file, expected)}
        if own:
            others.append(path)
        columns |= own
    if not others:
        return []
    names = [key for key in marks[paths.index(others[0])] if key in columns]
    listed = ", ".join(map(repr, names[:MOST_SHOWN]))
    if len(names) > MOST_SHOWN:
        listed += f" and {len(names) - MOST_SHOWN} more"
    files = str(others[0])
    verb = "has"
    if len(others) > 1:
        more = len(others) - 1
        files += f" and {more} more file{'s' if more > 1 else ''}"
        verb = "have"
    own_mark = NAMES[columns[names[0]]]
    mark = NAMES[expected[names[0]]]
    sentence = (
        f"{files} {verb} numbers with a decimal {own_mark} ({listed}), but other rows "
        f"have a decimal {mark}: each file was read with its own mark."
    )
    return [Note(sentence, Importance.ADVICE)]


def keys_to_exchange(marks: Mapping[str, str], expected: Mapping[str, str]) -> set[str]:
    """Return the keys of the columns that do not have the expected decimal mark."""
    return {
        key for key, mark in marks.items() if mark and expected.get(key, mark) != mark
    }
