"""How the pages are built: python -m sphinx -W -b html docs docs/_build/html."""

import os
import re
import warnings
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

from docutils import nodes

project = "mmcnb"
author = "The mmcnb developers"
copyright = author
release = version = installed_version("mmcnb")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "examples", "templates"]
templates_path = ["templates"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 2

html_theme = "pydata_sphinx_theme"
html_title = "mmcnb"
html_baseurl = "https://mmcnb.readthedocs.io/en/latest/"
html_static_path = ["static"]
html_css_files = ["mmcnb.css"]
html_show_sourcelink = False
html_theme_options = {
    "github_url": "https://github.com/mmcnb/mmcnb",
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "navbar_persistent": ["search-button"],
    "navbar_align": "left",
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": [], "get_started": [], "comparison": [], "changelog": []}
toc_object_entries_show_parents = "hide"

autosummary_generate = True
default_role = "obj"  # `name` in a docstring leads to its page
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say the types, with shapes
numpydoc_show_class_members = False  # templates/autosummary/class.rst lists them
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# Links to other projects need their inventories, so they are made where the network is.
NEIGHBOURS = {
    "anndata": "https://anndata.readthedocs.io/en/stable/",
    "dask": "https://docs.dask.org/en/stable/",
    "numpy": "https://numpy.org/doc/stable/",
    "pandas": "https://pandas.pydata.org/docs/",
    "python": "https://docs.python.org/3/",
    "scipy": "https://docs.scipy.org/doc/scipy/",
    "sklearn": "https://scikit-learn.org/stable/",
    "zarr": "https://zarr.readthedocs.io/en/stable/",
}
online = any(os.environ.get(name) for name in ("READTHEDOCS", "MMCNB_INTERSPHINX"))
numpydoc_xref_param_type = online
intersphinx_mapping = (
    {name: (address, None) for name, address in NEIGHBOURS.items()} if online else {}
)

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"\.py$",
    "subsection_order": ["examples/first", "examples/data", "examples/scale"],
    "within_subsection_order": "FileNameSortKey",
    "show_signature": False,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "write_computation_times": False,
    "backreferences_dir": None,
    "matplotlib_animations": False,
}
# What an example warns of is shown without the folder of the build.
warnings.formatwarning = lambda message, category, *place: (
    f"{category.__name__}: {message}\n"
)
# Without the network other hosts are not asked.
linkcheck_ignore = [] if online else [r"https?://.*"]


def escape_bars(
    app: object, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Keep ``|w|`` a norm: reST would take it for a substitution."""
    bar_or_literal = re.compile(r"``.*?``|\|")
    lines[:] = [
        bar_or_literal.sub(lambda found: r"\|" if found[0] == "|" else found[0], line)
        for line in lines
    ]


def link_names(app: Any, doctree: nodes.document, page: str) -> None:
    """Make ``mmcnb.load`` and ``UnsupervisedRLS`` lead to their pages, wherever they are written as code."""
    objects = app.env.domains["py"].objects
    for literal in list(doctree.findall(nodes.literal)):
        text = literal.astext().removesuffix("()")
        entry = objects.get(text if "." in text else f"mmcnb.{text}")
        if (
            entry
            and entry.docname != page
            and not isinstance(literal.parent, nodes.reference | nodes.title)
        ):
            address = (
                app.builder.get_relative_uri(page, entry.docname) + f"#{entry.node_id}"
            )
            literal.replace_self(
                nodes.reference(
                    "", "", literal.deepcopy(), refuri=address, internal=True
                )
            )


def first_paragraph(page: Any) -> str:
    """Text of the first paragraph that is neither in a table nor in a note."""
    prose = (
        node
        for node in page.findall(lambda node: node.tagname == "paragraph")
        if node.parent.tagname in ("section", "desc_content")
    )
    return " ".join(next(prose).astext().split())


def write_llms_txt(app: Any, exception: Exception | None) -> None:
    """List the pages, in the order of the contents, with the first sentence of each, for readers of text."""
    if exception or app.builder.name != "html":
        return
    lines = [
        f"# {project}",
        "",
        "> Maximum margin clustering for data larger than memory.",
        "",
    ]
    waiting = [app.config.root_doc]
    while waiting:
        page = waiting.pop(0)
        waiting[:0] = app.env.toctree_includes.get(page, [])
        title = app.env.titles[page].astext()
        sentence = re.split(r"(?<=[.?])\s", first_paragraph(app.env.get_doctree(page)))[
            0
        ]
        lines.append(
            f"- [{title}]({html_baseurl}{app.builder.get_target_uri(page)}): {sentence}"
        )
    (Path(app.outdir) / "llms.txt").write_text("\n".join(lines) + "\n")


def setup(app: Any) -> None:
    """Hook into the reading of docstrings, after numpydoc, and into the end of a build."""
    app.connect("autodoc-process-docstring", escape_bars, priority=900)
    app.connect("doctree-resolved", link_names)
    app.connect("build-finished", write_llms_txt)
