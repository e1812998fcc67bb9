"""Docstrings of the public names: python .ci/docstrings.py, from any folder.

Each has a summary, all its parameters in their order and what it returns, as numpydoc
validates them, and an example that runs unless it is abstract. It prints the faults,
and exits with 1 if there is one.
"""

import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from numpydoc.docscrape import get_doc_object
from numpydoc.validate import validate

ROOT = Path(__file__).resolve().parents[1]
# Unknown, missing, misnamed or misordered parameters, no summary, no section for what
# is returned.
RULES = {"GL08", "SS01", "PR01", "PR02", "PR03", "PR04", "RT01", "YD01"}


def public_modules() -> list[str]:
    """The modules that the page of the API lists."""
    page = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    return re.findall(r"^\| `(mmcnb[.\w]*)` \|", page, re.MULTILINE)


def public_names() -> set[str]:
    """Classes and functions of these modules; the fields of a named tuple are explained beside them."""
    names = set()
    for module_name in public_modules():
        module = importlib.import_module(module_name)
        for name in module.__all__:
            thing = getattr(module, name)
            # compiled routines wrap one
            is_function = inspect.isfunction(inspect.unwrap(thing))
            if is_function or (inspect.isclass(thing) and not issubclass(thing, tuple)):
                names.add(f"{thing.__module__}.{thing.__qualname__}")
    return names


def faults_of(name: str) -> Iterator[str]:
    """What is wrong with the docstring of a name."""
    yield from (
        f"{code}: {sentence}"
        for code, sentence in validate(name)["errors"]
        if code in RULES
    )
    module, _, attribute = name.rpartition(".")
    thing = getattr(importlib.import_module(module), attribute)
    if not inspect.isabstract(thing) and ">>>" not in "\n".join(
        get_doc_object(thing)["Examples"]
    ):
        yield "it has no example that runs."


def main() -> int:
    """Print the faults.

    Returns
    -------
    int
        1 if there is one, else 0.
    """
    sys.path.insert(0, str(ROOT))
    names = sorted(public_names())
    faults = [f"{name}: {fault}" for name in names for fault in faults_of(name)]
    for fault in faults:
        print(fault)
    print(f"{len(names)} public names, {len(faults)} faults")
    return int(bool(faults) or not names)


if __name__ == "__main__":
    sys.exit(main())
