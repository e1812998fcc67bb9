"""Text that several docstrings share, and a decorator that inserts it at import."""

import inspect
from typing import TypeVar

Documented = TypeVar("Documented")

SHARED = {
    "{rows}": "array, CSR, frame, AnnData, path or Zarr node, "
    "of shape (n_samples, n_features)",
    "{weights}": "ndarray or Zarr array of shape (n_samples,), path or None, "
    "default=None",
    "{labels}": "array-like of shape (n_samples,), Zarr array, path or None, "
    "default=None",
    "{element}": """element : str or None, default=None
    Name of the element that contains the rows in an AnnData object, a Zarr group
    or a file, such as "layers/counts". None means "X".""",
}


def fill_docstrings(thing: Documented) -> Documented:
    """Replace the placeholders of `SHARED` in the docstring of a function or class.

    For a class, placeholders in the docstrings of its methods are also replaced. This
    function is used as a decorator.

    Parameters
    ----------
    thing : function or class
        Object whose docstring may contain placeholders such as ``{rows}``.

    Returns
    -------
    function or class
        ``thing`` itself, with its docstring changed.
    """
    if inspect.isclass(thing):
        for member in vars(thing).values():
            if inspect.isfunction(member):
                fill_docstrings(member)
    docstring = thing.__doc__ or ""
    if any(placeholder in docstring for placeholder in SHARED):
        # Python versions before 3.13 do not strip the indentation of docstrings.
        docstring = inspect.cleandoc(docstring)
        for placeholder, text in SHARED.items():
            docstring = docstring.replace(placeholder, text)
        thing.__doc__ = docstring
    return thing
