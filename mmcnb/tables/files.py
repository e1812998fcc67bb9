"""Read a table file, or a folder of table files, as one table."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa

from mmcnb.errors import InputError
from mmcnb.samples.formats import table_files, table_format
from mmcnb.tables.arrow import TEXT
from mmcnb.tables.base import BaseTable, Part, Types, is_numeral
from mmcnb.tables.columnar_file import (
    ColumnarFile,
    OpenedFile,
    open_arrow,
    open_parquet,
)
from mmcnb.tables.csv_file import CSVFile
from mmcnb.tables.csv_lines import NotUTF8Error
from mmcnb.tables.decimal_marks import (
    expected_marks,
    keys_to_exchange,
    marks_of_file,
    notes_on_marks,
)
from mmcnb.tables.excel_file import open_excel
from mmcnb.tables.joined_files import (
    notes_on_lacking,
    refuse_other_spellings,
    refuse_unrelated_files,
)
from mmcnb.tables.json_file import open_json, open_json_lines
from mmcnb.tables.options import TableOptions
from mmcnb.tables.other_files import open_arff, open_orc, open_sas, open_stata
from mmcnb.tables.reader import TypeChangedError

OPENERS: dict[str, Callable[[Path], OpenedFile]] = {
    "parquet": open_parquet,
    "arrow": open_arrow,
    "json lines": open_json_lines,
    "json": open_json,
    "orc": open_orc,
    "stata": open_stata,
    "sas": open_sas,
    "arff": open_arff,
}

COLUMN_BYTES = 36 * 2**10  # measured memory per column while a table is read


class FileTable(BaseTable):
    """A table in a file, or in all files below a folder, joined by column name.

    A folder named ``year=2024`` adds a column ``year`` to the files below it.

    Parameters
    ----------
    path : Path
        File or folder.
    options : TableOptions
    show_progress : bool or None, default=False
        Whether to show a progress bar while text is read. If None, it is shown only on
        a terminal.
    is_flat : bool, default=True
        Whether lists and objects are split into plain columns.

    Attributes
    ----------
    cached_bytes : int
        Memory, in bytes, that a reader of the table needs in addition to a batch of
        rows.
    file_lengths : list of int
        Number of rows of each file, or 0 for each file that cannot be read by groups.
    """

    paths: list[Path]

    def __init__(
        self,
        path: Path,
        options: TableOptions,
        show_progress: bool | None = False,
        is_flat: bool = True,
    ) -> None:
        form = table_format(path)
        self.name = str(path)
        self.is_text = form == "csv"
        self.paths = table_files(path)
        if path.is_dir():
            self.files = tuple(file.relative_to(path).as_posix() for file in self.paths)
        if form == "excel":
            refuse_csv_options(path, options, of_sheets=("header", "skip_lines"))
        elif not self.is_text:
            refuse_csv_options(path, options)
        if form != "excel" and not _is_of_fit("sheet", options):
            raise InputError(
                f"sheet applies to workbooks only, and {path} is not a workbook: "
                "leave sheet out."
            )
        open_file = OPENERS.get(form or "", partial(open_excel, options=options))
        self._options = options
        self._open_csv = partial(CSVFile, options=options, show_progress=show_progress)
        self._files: list[CSVFile | ColumnarFile] = []
        for file in self.paths:
            if self.is_text:
                self._files.append(self._open_csv(file))
            else:
                self._files.append(ColumnarFile(file, open_file, is_flat))
        self._folders = [
            _values_of_folders(file.relative_to(path)) for file in self.paths
        ]
        self._describe()

    def _describe(self) -> None:
        """Set the attributes of the table from the columns of all files."""
        first = self._files[0]
        if len(self._files) == 1 and isinstance(first, ColumnarFile):
            self.metadata = first.schema.metadata
        self.has_names = first.has_names
        self.index_columns = first.index_columns
        groups = [file.lengths for file in self._files if file.lengths is not None]
        self.lengths = None
        if len(groups) == len(self._files):
            self.lengths = list(chain.from_iterable(groups))
        self.file_lengths = [sum(file.lengths or ()) for file in self._files]
        types_of_folders = self._types_of_folders()
        types = self._types_of_files() | types_of_folders
        of_reader = max(file.cached_bytes for file in self._files)
        self.cached_bytes = of_reader + COLUMN_BYTES * len(types)
        if not types:
            raise InputError(f"{self.name} has no columns: add at least one.")
        self.keys = list(types)
        self.types = list(types.values())
        blocks: dict[str, str] = {}
        for file in self._files:
            blocks |= dict(zip(file.keys, file.blocks, strict=False))
        self.blocks = [blocks.get(key, "") for key in self.keys]
        sources: dict[str, str] = {}
        for file in self._files:
            sources |= dict(zip(file.keys, file.sources, strict=True))
        in_files = [sources.get(key, key) for key in self.keys]
        numbers = {source: k for k, source in enumerate(dict.fromkeys(in_files))}
        self.numbers = [numbers[source] for source in in_files]
        if len(numbers) == len(self.keys):
            self.numbers = []
        in_all_files = set(first.keys)
        for file in self._files:
            in_all_files &= set(file.keys)
        self.partial_keys = types.keys() - in_all_files - types_of_folders.keys()
        self.names = self.keys
        if len(self.keys) == len(first.names):
            self.names = first.names
        self._note_on_marks = self._expect_marks()
        self.notes = self._notes_of_files()

    def text_files(self) -> list[CSVFile] | None:
        """Return the CSV files if their text can be concatenated, otherwise None.

        The files must have the same columns in the same order, and folders must not add
        columns.
        """
        texts = []
        for file in self._files:
            if isinstance(file, CSVFile):
                texts.append(file)
        first = texts[0] if texts else None
        if first is None or len(texts) < len(self._files) or any(self._folders):
            return None
        for file in texts:
            if (file.names, file.delimiter) != (first.names, first.delimiter):
                return None
        return texts

    def types_as_written(self) -> dict[str, pa.DataType]:
        """Return the types of the columns in the files, before any conversion."""
        types: dict[str, list[pa.DataType]] = {}
        for file in self._files:
            written = file.types
            if isinstance(file, ColumnarFile):
                written = file.schema.types
            for key, data_type in zip(file.keys, written, strict=True):
                types.setdefault(key, []).append(data_type)
        common = {key: self._common_type(key, types[key]) for key in types}
        return common | self._types_of_folders()

    def _types_of_files(self) -> dict[str, pa.DataType]:
        first = self._files[0]
        types: dict[str, list[pa.DataType]] = {}
        for path, file in zip(self.paths, self._files, strict=True):
            has_other_keys = not file.has_names and file.keys != first.keys
            if file.has_names != first.has_names or has_other_keys:
                raise InputError(
                    f"{path} has a different header from {self.paths[0]}: give all "
                    "files the same header."
                )
        keys = [file.keys for file in self._files]
        refuse_other_spellings(self.paths, keys)
        refuse_unrelated_files(self.paths, keys)
        for file in self._files:
            for key, data_type in zip(file.keys, file.types, strict=True):
                types.setdefault(key, []).append(data_type)
        return {key: self._common_type(key, types[key]) for key in types}

    def _common_type(self, key: str, types: list[pa.DataType]) -> pa.DataType:
        schemas = [pa.schema({key: data_type}) for data_type in types]
        try:
            return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
        except pa.ArrowException as error:
            if self.is_text:
                return TEXT
            listed = " and ".join(dict.fromkeys(map(str, types)))
            raise InputError(
                f"{self.name}: column {key!r} has the types {listed} in its files: "
                "write it with the same type in all files."
            ) from error

    def orders(self) -> dict[int, list[str]]:
        """Return the categories of each ordered column, as texts in their order.

        The keys of the result are column indices. A column is not ordered if the
        categories of one of its files are not a subsequence of the longest list of its
        categories.
        """
        of_files: dict[str, list[list[str]]] = {}
        for file in self._files:
            if isinstance(file, ColumnarFile):
                for key, texts in file.orders().items():
                    of_files.setdefault(key, []).append(texts)
        orders = {}
        for position, key in enumerate(self.keys):
            longest = max(of_files.get(key, []), key=len, default=[])
            if longest and all(_is_part(texts, longest) for texts in of_files[key]):
                orders[position] = longest
        return orders

    def _notes_of_files(self) -> list[str]:
        notes = list(chain.from_iterable(file.notes for file in self._files))
        keys = [file.keys for file in self._files]
        return [*notes, *notes_on_lacking(self.paths, keys), *self._note_on_marks]

    def _expect_marks(self) -> list[str]:
        """Find the columns of each file in which points and commas must be exchanged.

        They are stored in the attribute ``keys_to_exchange`` of the file. The result is
        a list of notes about decimal marks.
        """
        files = [file for file in self._files if isinstance(file, CSVFile)]
        certain = [file.certain_marks for file in files]
        marks = list(map(marks_of_file, certain))
        expected = expected_marks(marks, self._options)
        for position in self.resolve(self._options.text, "--text"):
            expected.pop(self.keys[position], None)
        for file, of_file in zip(files, marks, strict=True):
            file.keys_to_exchange = keys_to_exchange(of_file, expected)
        return notes_on_marks(self.paths[: len(files)], certain, expected)

    def _types_of_folders(self) -> dict[str, pa.DataType]:
        """Return the types of the columns that folder names add to all files."""
        types = {}
        for key in self._folders[0]:
            values = [folders.get(key) for folders in self._folders]
            if None in values:
                continue
            if any(key in file.keys for file in self._files):
                raise InputError(
                    f"{self.name}: {key!r} names both a column and folders: rename the "
                    "folders."
                )
            is_whole = all(map(is_numeral, values))
            types[key] = pa.int64() if is_whole else TEXT
        return types

    def parts(self, wanted: Types, group: int | None = None) -> Iterator[Part]:
        """Yield columns of all rows or of one row group; see `BaseTable.parts`."""
        files = zip(self.paths, self._files, self._folders, strict=True)
        for number, (path, file, values) in enumerate(files):
            n_groups = len(file.lengths or ())
            if group is None or 0 <= group < n_groups:
                name = ""
                if len(self.paths) > 1:
                    name = f"{path.relative_to(self.name).as_posix()}, "
                types = {key: wanted[key] for key in wanted if key in file.keys}
                first = 0
                try:
                    for part in file.parts(types, group):
                        filled = _filled(part, name, values, wanted)
                        yield filled._replace(first=first, file=number)
                        first += part.n_rows
                except NotUTF8Error as error:
                    self._files[number] = self._open_csv(path, is_utf8=False)
                    self._describe()
                    raise TypeChangedError from error
            if group is not None:
                group -= n_groups
        self.notes = self._notes_of_files()


def refuse_csv_options(
    name: object, options: TableOptions, of_sheets: Sequence[str] = ()
) -> None:
    """Raise InputError if an option applies to CSV files only.

    Options that were set for a fit, rather than for this table, are ignored.

    Parameters
    ----------
    name : object
        Name of the table, for messages.
    options : TableOptions
    of_sheets : sequence of str, default=()
        Options of CSV files that also apply to this table.
    """
    for option in ("header", "delimiter", "skip_lines", "codec"):
        if option not in of_sheets and not _is_of_fit(option, options):
            public_name = "encoding" if option == "codec" else option
            raise InputError(
                f"{public_name} applies to CSV files only, and {name} is not a CSV "
                f"file: leave {public_name} out."
            )


def _is_of_fit(option: str, options: TableOptions) -> bool:
    """Return whether an option has its default value, or the value from the fit."""
    value = getattr(options, option)
    if value == getattr(TableOptions, option):
        return True
    if options.encoding is None:
        return False
    return value == dict(options.encoding.options).get(option)


def _is_part(texts: list[str], order: list[str]) -> bool:
    """Return whether texts are a subsequence of an order."""
    return [text for text in order if text in texts] == texts


def _values_of_folders(path: Path) -> dict[str, str]:
    """Return the columns, and their values, that folder names such as year=2024 add."""
    values = {}
    for folder in path.parts[:-1]:
        key, mark, value = folder.partition("=")
        if mark:
            values[unquote(key)] = unquote(value)
    return values


def _filled(part: Part, name: str, values: dict[str, str], wanted: Types) -> Part:
    """Add the columns that a part lacks, filled with a value of its folder or null."""
    columns = dict(part.columns)
    place = part.place
    for key in wanted.keys() - columns.keys():
        value = pa.scalar(values.get(key), pa.string()).cast(wanted[key])
        columns[key] = pa.repeat(value, part.n_rows)
    return part._replace(columns=columns, place=lambda row: name + place(row))
