"""Open the rows of the argument DATA with the options of the command and a model."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmcnb.cli._options import OF_TABLES, Arguments, option_of
from mmcnb.errors import InputError

if TYPE_CHECKING:
    from mmcnb.samples import Samples


def check_is_there(store: str) -> None:
    """Raise InputError if ``store`` is a local path that does not exist."""
    if "://" not in store and not Path(store).exists():
        from mmcnb.samples.files import absent_error

        raise absent_error(store)


def options_of_tables(arguments: Arguments) -> dict[str, Any]:
    """Return the table options that are set on the command line, by name.

    Raises
    ------
    InputError
        If a table option is set that does not apply to the format of the rows.
    """
    from mmcnb.samples.formats import table_format
    from mmcnb.tables.array_table import OF_ARRAYS, is_of_arrays

    given = {}
    for name in OF_TABLES:
        value = getattr(arguments, name, None)
        if value is not None:
            given[name] = value
    store = arguments.store
    is_table = store is not None and table_format(Path(store)) is not None
    wrong = [] if is_table else list(given)
    if store is not None and not is_table and is_of_arrays(store):
        wrong = [name for name in given if name not in OF_ARRAYS]
    if wrong:
        option = option_of(wrong[0])
        place = "no file is given"
        if store is not None:
            place = f"{store} is not such a file"
        raise InputError(
            f"{option} applies to CSV, Parquet and Arrow files only, but {place}; "
            "leave it out."
        )
    return given


def open_rows(arguments: Arguments, estimator: object = None) -> "Samples":
    """Open the rows of a command.

    A table is read with the options of the model, except those that are set on the
    command line.

    Parameters
    ----------
    arguments : argparse.Namespace
        Parsed arguments of the command.
    estimator : estimator or None, default=None
        Fitted or unfitted estimator, from which options are taken.

    Raises
    ------
    InputError
        If the rows cannot be read, or if a table option is set that the fit of the
        model has determined.
    """
    from mmcnb import open_samples
    from mmcnb.tables.array_table import is_of_arrays, open_array
    from mmcnb.tables.options import OF_FILES, named_options, options_of_fit

    given = options_of_tables(arguments)
    has_table = options_of_fit(estimator) is not None
    decided = [name for name in given if name not in OF_FILES]
    if has_table and decided:
        raise InputError(
            f"{option_of(decided[0])} was decided when the model was fitted; "
            "leave it out."
        )
    options = options_of_fit(estimator, given)
    if options is None and (given or estimator is None):
        options = named_options({"missing": "neighbors"} | given)
        if given and is_of_arrays(arguments.store):
            return open_array(arguments.store, arguments.element, options)
    return open_samples(arguments.store, arguments.element, options=options)
