"""How the pages are built: python -m sphinx -W -b html docs docs/_build/html."""

from importlib.metadata import version as installed_version

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
