"""Text that many docstrings share, written once and filled in at import."""

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
    Element that contains the rows in an AnnData object, a Zarr group or a file,
    such as "layers/counts". None means "X".""",
}


def fill_docstrings(thing: Documented) -> Documented:
    """Replace the placeholders of `SHARED` in the docstrings of a function or a class.

    This is a decorator. For a class, it also fills in the docstrings of the methods.

    Parameters
    ----------
    thing : function or class
        Object whose docstring has placeholders such as ``{rows}``.

    Returns
    -------
    function or class
        The same object.
    """
    if inspect.isclass(thing):
        for member in vars(thing).values():
            if inspect.isfunction(member):
                fill_docstrings(member)
    docstring = thing.__doc__ or ""
    if any(placeholder in docstring for placeholder in SHARED):
        # Python strips the indentation of docstrings only from 3.13 on.
        docstring = inspect.cleandoc(docstring)
        for placeholder, text in SHARED.items():
            docstring = docstring.replace(placeholder, text)
        thing.__doc__ = docstring
    return thing
