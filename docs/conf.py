"""How the pages are built: python -m sphinx -W -b html docs docs/_build/html."""

import re
from importlib.metadata import version as installed_version
from typing import Any

project = "mmcnb"
author = "The mmcnb developers"
release = version = installed_version("mmcnb")

extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
html_theme = "alabaster"
html_theme_options = {"description": "Maximum margin clustering for data larger than memory"}

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say the types, with shapes
autosummary_generate = False  # numpydoc switches it on, and these pages name what they show
numpydoc_show_class_members = False
myst_heading_anchors = 2


def escape_bars(app: object, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Keep ``|w|`` a norm: reST would take it for a substitution."""
    bar_or_literal = re.compile(r"``.*?``|\|")
    lines[:] = [
        bar_or_literal.sub(lambda found: r"\|" if found[0] == "|" else found[0], line) for line in lines
    ]


def setup(app: Any) -> None:
    """Hook into the reading of docstrings, after numpydoc."""
    app.connect("autodoc-process-docstring", escape_bars, priority=900)
