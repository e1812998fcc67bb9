"""Write the command and the Python call that repeat a fit with its options."""

import ast
import csv
import inspect
import io
import os
import shlex
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from mmcnb.engine.session import FitSession
from mmcnb.errors import InputError
from mmcnb.estimators.methods import DEFAULT, METHODS, OPTIONS, text_of
from mmcnb.estimators.parameters import RUNTIME_NAMES
from mmcnb.samples import Samples
from mmcnb.tables.options import OF_FILES, given_options, named_options

# Options of `fit` itself; all other options belong to `read_table`.
OF_FIT = ("columns", "keep")
# Options that may contain values of the table, or the name of a sheet.
OF_CELLS = ("na_values", "orders", "sheet")
# Arguments of `fit` with one value per row.
OTHER_ARGUMENTS = ("sample_weight", "partial_labels")
ROWS = "X"
OF_PAGE = "labels_of_page"  # variable for labels that are not in a file
# Placeholder for a value that must not be written. The call uses a variable instead.
NO_LITERAL: Any = object()


class Repeat(NamedTuple):
    """The shell commands and the Python code that repeat a fit.

    Attributes
    ----------
    command : str
        Shell commands; "" if the command line cannot repeat the fit.
    call : str
        Python code.
    notes : list of str
        Sentences about what the command and the code cannot reproduce.
    """

    command: str
    call: str
    notes: list[str]


class PageArguments(NamedTuple):
    """The arguments of `write_report`, as the user passed them.

    Attributes
    ----------
    labels, meta : object
        Labels of the rows, and a table about the rows: a path, values or None.
    hide_rows : bool
        Whether the page must not show the path of the rows, and options that may
        contain values of the table. The call then contains variables instead, and the
        command is empty.
    """

    labels: Any = None
    meta: object = None
    hide_rows: bool = False


class _Fit(NamedTuple):
    """The rows of a fit, and the settings that determine its labels.

    Attributes
    ----------
    name : str
        Class of the estimator.
    parameters : dict
        Parameters that differ from their defaults.
    options : dict
        Table options that differ from the defaults of a fit.
    arguments : list of str
        Arguments of `fit` with one value per row, which are written as variables.
    source : str or None
        Path of the rows; None for rows in memory.
    element : str or None
        Element of the source; None for the default element.
    page : dict
        Arguments of `write_report` that differ from their defaults.
    """

    name: str
    parameters: dict[str, Any]
    options: dict[str, Any]
    arguments: list[str]
    source: str | None
    element: Any
    page: dict[str, Any]

    @property
    def without_option(self) -> list[str]:
        """Names of parameters and arguments that the command line cannot express."""
        names = [
            key for key, value in self.parameters.items() if text_of(value) is None
        ]
        names += self.arguments
        if "dtype" in self.options:
            names.append("dtype")
        return names

    @property
    def in_memory(self) -> list[str]:
        """Names of page arguments whose values are in memory.

        The command line can read these values only from files.
        """
        return [key for key, value in self.page.items() if value is NO_LITERAL]


def input_of(session: FitSession) -> dict[str, Any]:
    """Return the report entries "input" and "seed", which are needed to repeat a fit.

    Parameters
    ----------
    session : FitSession
        Session of the fit.

    Returns
    -------
    dict
        "input" is a dict: "options" contains the table options that differ from the
        defaults of a fit, and "arguments" lists the names of further arguments, such as
        "sample_weight". "input" is left out if both are empty. "seed" is the seed that
        was drawn; it is left out if the user passed ``random_state``.
    """
    table_options = session.samples.table_options
    options = {} if table_options is None else given_options(table_options)
    values = (session.weights, session.known)
    arguments = [
        name
        for name, value in zip(OTHER_ARGUMENTS, values, strict=True)
        if value is not None
    ]
    entries: dict[str, Any] = {}
    if options or arguments:
        entries["input"] = {"options": options, "arguments": arguments}
    if session.drawn_seed is not None:
        entries["seed"] = session.drawn_seed
    return entries


def how_to_repeat(
    estimator: Any,
    X: object,
    samples: Samples,
    page: PageArguments,
) -> Repeat:
    """Return the command and the call that reproduce the labels of a fit and its page.

    Parameters
    ----------
    estimator : estimator
        The fitted estimator.
    X : path, array, frame or other rows
        The rows of the fit, as the user passed them.
    samples : Samples
        The same rows, opened.
    page : PageArguments
        The arguments of the page.

    Returns
    -------
    Repeat

    Examples
    --------
    >>> import mmcnb
    >>> from mmcnb.estimators.repeat import PageArguments, how_to_repeat
    >>> X = [[0.0], [0.1], [2.0], [2.1]]
    >>> model = mmcnb.CPMMC(random_state=0).fit(X)
    >>> samples = mmcnb.open_samples(X)
    >>> print(how_to_repeat(model, X, samples, PageArguments()).call)
    import mmcnb
    <BLANKLINE>
    model = mmcnb.CPMMC(random_state=0).fit(X)
    labels = model.labels_
    model.write_report(X, "report.html")
    """
    report = estimator.report_
    recorded = report.get("input") or {}
    # A model file may contain arbitrary names.
    arguments = [
        name for name in OTHER_ARGUMENTS if name in (recorded.get("arguments") or ())
    ]
    if "classes" in report:  # the estimator is a classifier
        arguments.insert(0, "y")
    options = _checked_options(recorded.get("options") or {})
    if samples.table_options is not None:
        # The options with which these rows were read replace those of the fit.
        read = given_options(samples.table_options)
        for name in OF_FILES:
            options.pop(name, None)
        options |= {name: read[name] for name in OF_FILES if name in read}
    hides = page.hide_rows
    source = None if hides else _path_of(X, samples)
    element: Any = samples.element if samples.element != ROWS else None
    if hides:
        options |= dict.fromkeys(options.keys() & {*OF_CELLS}, NO_LITERAL)
        element = NO_LITERAL if element is not None else None
    fit = _Fit(
        name=type(estimator).__name__,
        parameters=_changed_parameters(estimator),
        options=options,
        arguments=arguments,
        source=source,
        element=element,
        page=_changed_page(estimator, page),
    )
    return Repeat(_command(fit), _call(fit), list(_notes(fit, report, samples)))


def _changed_parameters(estimator: Any) -> dict[str, Any]:
    """Return the parameters that affect labels and differ from their defaults."""
    defaults = inspect.signature(type(estimator)).parameters
    changed = {}
    for name, value in estimator.get_params(deep=False).items():
        if isinstance(value, np.generic):
            value = value.item()
        # The memory limit affects labels, because a small limit reduces the sample.
        is_counted = name not in RUNTIME_NAMES or name == "memory_limit"
        if is_counted and repr(value) != repr(defaults[name].default):
            changed[name] = value
    if "random_state" not in changed and "seed" in estimator.report_:
        changed["random_state"] = estimator.report_["seed"]
    return changed


def _changed_page(estimator: Any, page: PageArguments) -> dict[str, Any]:
    """Return the arguments of a report page that differ from their defaults.

    A value becomes `NO_LITERAL` if it is not a path or if the page must not show it.
    The labels of the fit are the default of ``labels``.
    """
    changed: dict[str, Any] = {}
    own: Any = getattr(estimator, "labels_", None)
    if own is not None and np.array_equal(page.labels, own):
        page = page._replace(labels=None)
    for name in ("labels", "meta"):
        value = getattr(page, name)
        if value is not None:
            is_shown = isinstance(value, str | os.PathLike) and not page.hide_rows
            changed[name] = os.fspath(value) if is_shown else NO_LITERAL
    if page.hide_rows:
        changed["hide_rows"] = True
    return changed


def _checked_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a report, or no options if any of them is invalid."""
    try:
        return given_options(named_options(options))
    except (InputError, TypeError, ValueError, AttributeError):
        return {}


def _path_of(X: object, samples: Samples) -> str | None:
    """Return the path of the rows as the user passed it, or None for rows in memory."""
    if isinstance(X, str | os.PathLike):
        return os.fspath(X)
    if samples.path is not None or samples.table_source is not None:
        return samples.name
    return None


# -- Python ----------------------------------------------------------------------------


def _literal(value: Any) -> str | None:
    """Return a Python literal for a value, or None if it has no literal."""
    text = repr(value)
    try:
        is_same = repr(ast.literal_eval(text)) == text
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return text if is_same else None


def _arguments(values: Mapping[str, Any]) -> list[str]:
    """Return keyword arguments as Python code.

    A value without a literal is written as a variable that has the name of the
    argument.
    """
    return [f"{name}={_literal(value) or name}" for name, value in values.items()]


def _call(fit: _Fit) -> str:
    """Return the Python code that repeats a fit."""
    rows = ROWS if fit.source is None else repr(fit.source)
    of_element = {} if fit.element is None else {"element": fit.element}
    lines = ["import mmcnb", ""]
    of_fit: dict[str, Any] = {}
    if set(fit.options) <= {*OF_FIT}:
        of_fit = fit.options
    else:
        reading = _in_python(fit.options) | of_element
        words = ", ".join([rows, *_arguments(reading)])
        lines.append(f"{ROWS} = mmcnb.read_table({words})")
        rows = ROWS
        of_element = {}
    words = ", ".join(_arguments(fit.parameters))
    variables = [f"{argument}={argument}" for argument in fit.arguments]
    call = ", ".join([rows, *variables, *_arguments(of_element | of_fit)])
    lines.append(f"model = mmcnb.{fit.name}({words}).fit({call})")
    labels = "model.labels_"
    if "y" in fit.arguments:
        labels = f"model.predict({', '.join([rows, *_arguments(of_element)])})"
    lines.append(f"labels = {labels}")
    of_page = _arguments(of_element | fit.page)
    if fit.page.get("labels") is NO_LITERAL:
        # The variable "labels" contains the labels of the fit.
        of_page[of_page.index("labels=labels")] = f"labels={OF_PAGE}"
    page = ", ".join([rows, '"report.html"', *of_page])
    lines.append(f"model.write_report({page})")
    return "\n".join(lines)


def _in_python(options: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with which `read_table` reads the rows as the fit did."""
    options = {"missing": "neighbors"} | options
    marks = options.get("na_values")
    if isinstance(marks, list):  # pairs of a column and a mark are lists in JSON
        options["na_values"] = [
            mark if isinstance(mark, str) else tuple(mark) for mark in marks
        ]
    return options


# -- the command line ------------------------------------------------------------------


def _command(fit: _Fit) -> str:
    """Return shell commands that repeat a fit, or "" if the command line cannot."""
    methods = {cls: method for method, cls in METHODS.items()}
    if fit.source is None or fit.name not in methods:
        return ""
    if fit.without_option or fit.in_memory:
        return ""
    rows = f"./{fit.source}" if fit.source.startswith("-") else fit.source
    of_element = [] if fit.element is None else _option("element", fit.element)
    words = ["mmcnb", "fit", rows, *of_element]
    if methods[fit.name] != DEFAULT:
        words += _option("method", methods[fit.name])
    for key, value in fit.parameters.items():
        if key in OPTIONS or key in RUNTIME_NAMES:
            words += _option(key, str(text_of(value)))
        else:
            words += _option("set", f"{key}={text_of(value)}")
    for key, value in fit.options.items():
        for word in _words(key, value):
            # A fit ignores labels, so the label column is left out.
            words += _option("drop" if key == "label_column" else key, word)
    words += ["--model", "clusters.model", "--labels", "labels.csv"]
    report = ["mmcnb", "report", "clusters.model", rows, *of_element]
    for key, value in fit.page.items():
        report += _option(key, value)
    report += ["--out", "report.html"]
    command = f"{shlex.join(words)}\n{shlex.join(report)}"
    # Unprintable characters may change when the command is copied to a terminal.
    return command if command.replace("\n", "", 1).isprintable() else ""


def _option(name: str, value: str) -> list[str]:
    """Return an option and its value as words of a command."""
    option = "--order" if name == "orders" else f"--{name.replace('_', '-')}"
    # argparse would parse a word that begins with a hyphen as another option.
    return [f"{option}={value}"] if value.startswith("-") else [option, value]


def _words(name: str, value: Any) -> Iterator[str]:
    """Yield the values of a table option, in the form of the command line.

    The command repeats the option for each value.
    """
    if name == "orders":
        for column, texts in value.items():
            yield f"{column}={','.join(texts)}"
    elif name == "na_values":
        pairs = value
        if isinstance(value, dict):
            pairs = [(column, mark) for column in value for mark in value[column]]
        for mark in pairs:
            if isinstance(mark, str):
                yield _quoted(mark)
            else:
                yield f"{mark[0]}={_quoted(mark[1])}"
    elif isinstance(value, list):
        yield from map(str, value)
    else:
        yield str(value)


def _quoted(mark: str) -> str:
    """Quote a missing-value marker if it contains a comma, a quote or "="."""
    if "=" in mark:
        return '"{}"'.format(mark.replace('"', '""'))
    cells = io.StringIO()
    csv.writer(cells, lineterminator="").writerow([mark])
    return cells.getvalue() if mark else ""


# -- what the command and the call cannot reproduce ------------------------------------


def _notes(fit: _Fit, report: Mapping[str, Any], samples: Samples) -> Iterator[str]:
    """Yield sentences about what the command and the Python call cannot reproduce."""
    if fit.source is None:
        yield f"In the call, {ROWS} stands for the rows of the fit."
    yield from _notes_on_seed(fit, report)
    values = fit.parameters | fit.options
    variables = [key for key, value in values.items() if _literal(value) is None]
    variables += fit.arguments
    variables += [OF_PAGE if key == "labels" else key for key in fit.in_memory]
    if variables:
        yield (
            "The call uses variables for values that cannot be written as text: "
            f"{', '.join(variables)}."
        )
    if fit.source is not None:
        if fit.name not in METHODS.values():
            yield f"The command line does not have the method {fit.name}."
        elif fit.without_option:
            names = ", ".join(fit.without_option)
            yield f"The command line has no option for {names}."
        elif fit.in_memory:
            names = " and ".join(fit.in_memory)
            yield f"The command line reads {names} from files only."
    if report.get("changes"):
        yield (
            "The clusters are numbered as in an earlier model, or new rows were added "
            "by an update. The call fits the rows without that model."
        )
        return
    sizes = report.get("sizes")
    if sizes and not fit.arguments and fit.options.get("missing") != "drop":
        n_rows = sum(sizes) + (report.get("noise") or 0)
        if n_rows != samples.n_samples:
            yield (
                f"The fit had {n_rows:,} rows, but this page describes "
                f"{samples.n_samples:,} rows; pass the rows of the fit."
            )


def _notes_on_seed(fit: _Fit, report: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence about the seed unless the user passed an integer seed."""
    seed = fit.parameters.get("random_state")
    if seed is None:
        yield (
            "The fit had no random_state, and its seed is not recorded, so the labels "
            "may differ in another run. Pass an integer, such as random_state=0, for "
            "reproducible labels."
        )
    elif not isinstance(seed, int):
        yield (
            "random_state was a generator, and its state is not recorded, so the "
            "labels may differ in another run. Pass an integer instead."
        )
    elif "seed" in report:
        yield "The fit had no random_state; the seed shown here was drawn at random."
