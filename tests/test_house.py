"""Rules of the house that a tool we use does not check already."""

import ast
import csv
import importlib
import inspect
import re
import sys
import tomllib
from pathlib import Path

import pytest
from numpydoc.docscrape import get_doc_object
from numpydoc.validate import validate

import mmcnb
import mmcnb.kernels

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("changes/*.md")])
SOURCES = sorted(
    p for room in ("mmcnb", "data_loaders", "benchmarks", "tests") for p in (ROOT / room).rglob("*.py")
)
PUBLIC_MODULES = [
    "mmcnb",
    "mmcnb.datasets",
    "mmcnb.kernels",
    "mmcnb.kernels.unchecked",
    "mmcnb.metrics",
    "mmcnb.plotting",
    "mmcnb.samples",
    "mmcnb.stores",
]

# Errors of numpydoc's validation we want none of: unknown, missing, misnamed or misordered parameters, no
# summary, no section for what is returned.
NUMPYDOC_RULES = {"GL08", "SS01", "PR01", "PR02", "PR03", "PR04", "RT01", "YD01"}


def quick_start_blocks():
    section = re.split(r"^## ", (ROOT / "README.md").read_text(), flags=re.MULTILINE)
    here = next(part for part in section if part.startswith("Quick start"))
    return re.findall(r"^```(\w*)\n(.*?)^```$", here, flags=re.MULTILINE | re.DOTALL)


def test_quick_start_is_two_commands_of_one_line():
    blocks = quick_start_blocks()
    assert [language for language, _ in blocks] == ["sh", "sh"]
    demo, tests = (text.splitlines() for _, text in blocks)
    assert len(demo) == len(tests) == 1
    assert demo[0].endswith("mmcnb demo")
    assert "pytest" in tests[0]
    for (line,) in (demo, tests):
        assert line.startswith("python3 -m venv .venv && ")


def test_the_readme_is_short_and_shows_anywhere():
    lines = (ROOT / "README.md").read_text().splitlines()
    assert lines.index("```python") < 30
    assert len(lines) < 120
    assert re.findall(r"\]\((?!https://)", "\n".join(lines)) == []


@pytest.mark.slow
@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "docs/get_started.md", "docs/sparse.md"])
def test_the_first_lines_a_reader_copies_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said: dict = {}
    for code in re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL):
        exec(code, said)
    assert len(said["model"].labels_) == said["X"].shape[0]


def test_the_wheel_holds_the_library_alone():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = settings["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["packages"] == ["mmcnb"]
    # The loaders stand at the top of a checkout alone, so what leads there stays out of the wheel.
    assert wheel["force-include"] == {"data_loaders": "mmcnb/datasets"}
    assert wheel["exclude"] == ["/mmcnb/datasets"]
    assert [path.name for path in (ROOT / "mmcnb" / "datasets").glob("*.py")] == ["__init__.py"]


def test_the_version_stands_in_one_place():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert settings["project"]["dynamic"] == ["version"]
    assert settings["tool"]["hatch"]["version"]["path"] == "mmcnb/__init__.py"
    assert f"\nversion: {mmcnb.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_what_is_imported_is_declared_and_the_reverse():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [
        one
        for name in ("plot", "data", "anndata", "hdf5", "dask", "remote")
        for one in project["optional-dependencies"][name]
    ]
    core, optional = (
        {re.match(r"[\w-]+", one)[0] for one in part} for part in (project["dependencies"], extras)
    )
    found = {
        module.partition(".")[0]
        for room in ("mmcnb", "data_loaders")
        for source in (ROOT / room).rglob("*.py")
        for module, _ in imported(source)
    }
    others = found - set(sys.stdlib_module_names) - {"mmcnb", "data_loaders"}
    names = {"sklearn": "scikit-learn", "google_crc32c": "google-crc32c"}
    named = {names.get(module, module) for module in others}
    assert named - core - optional == set()
    assert core - named == set()
    # Zarr reaches addresses through fsspec, and AnnData objects are made by their users.
    assert optional - named - {"anndata", "fsspec"} == set()


def test_each_dependency_has_its_reason():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    with (ROOT / "docs" / "dependencies.csv").open(newline="", encoding="utf-8") as file:
        reasons = {row["library"]: row["why"] for row in csv.DictReader(file)}
    assert reasons.keys() == {re.match(r"[\w-]+", one)[0] for one in declared}
    assert all(len(reason.split()) > 2 for reason in reasons.values())


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_pages_name_no_path_of_a_machine(page):
    assert not re.findall(r"(?<![\w.])/(?:work|root|home|tmp|Users)/\S*", page.read_text())


# Where the project's own addresses lead, in this repository.
ADDRESSES = {
    "https://mmcnb.readthedocs.io/en/latest/": ROOT / "docs",
    "https://raw.githubusercontent.com/mmcnb/mmcnb/main/": ROOT,
    "https://github.com/mmcnb/mmcnb/blob/main/": ROOT,
}


def source_of(page, target):
    """The file of the repository that a link shows; None for other hosts."""
    address = next((address for address in ADDRESSES if target.startswith(address)), None)
    if address is None and target.startswith("https://"):
        return None
    path = ADDRESSES[address] / target.removeprefix(address) if address else page.parent / target
    if "auto_examples" in path.parts:  # made from the examples when the pages are built
        path = Path(*["examples" if part == "auto_examples" else part for part in path.parts])
        return path.parent if path.stem == "index" else path.with_suffix(".py")
    return path.with_suffix(".md") if address and path.suffix == ".html" else path


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
        source = source_of(page, target)
        assert source is None or source.exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_tests_that_pages_name_are_there(page):
    named = re.findall(r"`(tests/[\w/]+\.py)`", page.read_text())
    assert [name for name in named if not (ROOT / name).exists()] == []


PROSE = [page for page in PAGES if page.parent.name != "changes" and page.name != "CHANGELOG.md"]


@pytest.mark.parametrize("page", PROSE, ids=lambda p: str(p.relative_to(ROOT)))
def test_sentences_of_the_pages_are_short(page):
    prose = re.sub(r"^```.*?^```|^[|#].*?$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    prose = re.sub(r"`[^`]*`", "code", prose)
    sentences = [sentence.split() for sentence in re.split(r"[.:!?][*)\"]*\s|\n\n|\n[*-] ", prose)]
    assert [" ".join(words) for words in sentences if len(words) > 35] == []


def test_numba_is_imported_in_one_place():
    importers = [
        p for p in SOURCES if re.search(r"^\s*(from numba|import numba)\b", p.read_text(), re.MULTILINE)
    ]
    assert [p.relative_to(ROOT).as_posix() for p in importers if p.is_relative_to(ROOT / "mmcnb")] == [
        "mmcnb/_numba.py"
    ]


def imported(source):
    """Modules and names of mmcnb that a file imports, as (module, name)."""
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield from ((node.module, alias.name) for alias in node.names)


@pytest.mark.parametrize("room", ["benchmarks", "data_loaders"])
def test_studies_and_loaders_import_public_names_alone(room):
    inner, measured = [], ROOT / "benchmarks/studies/_inner.py"  # constants of the evidence are fitted to it
    built = {*(ROOT / "benchmarks/support_cluster_machine").iterdir()}  # of the parts of streamed estimators
    for source in sorted({*(ROOT / room).rglob("*.py")} - {measured} - built):
        for module, name in imported(source):
            if module.partition(".")[0] != "mmcnb" or f"{module}.{name}" in PUBLIC_MODULES:
                continue
            public = module in PUBLIC_MODULES
            if not public or name not in (None, *importlib.import_module(module).__all__):
                inner.append(f"{source.relative_to(ROOT)}: {module} {name or ''}")
    assert inner == []


def test_the_api_page_lists_the_public_modules():
    page = (ROOT / "docs" / "api.md").read_text()
    assert re.findall(r"^\| `(mmcnb[.\w]*)` \|", page, re.MULTILINE) == PUBLIC_MODULES


def test_the_api_page_lists_each_public_class_and_function():
    page = (ROOT / "docs" / "api.md").read_text()
    for module_name in PUBLIC_MODULES:
        module = importlib.import_module(module_name)
        things = {name: getattr(module, name) for name in module.__all__}
        names = [
            name for name, thing in things.items() if inspect.isclass(thing) or inspect.isfunction(thing)
        ]
        if module_name != "mmcnb":  # what the module above it has too is listed there
            above = importlib.import_module(module_name.rpartition(".")[0])
            names = [name for name in names if name not in above.__all__]
        listed = re.findall(rf"^   {module_name}\.(\w+)$", page, re.MULTILINE)
        assert sorted(set(names) - set(listed)) == []
        assert len(listed) == len(set(listed))


def test_the_architecture_page_names_files_that_are_there():
    page = (ROOT / "docs" / "architecture.md").read_text()
    picture = (ROOT / "docs" / "pictures" / "fit.svg").read_text()
    named = {*re.findall(r"`([\w/]+\.py)`", page), *re.findall(r"\b\w+/\w+\.py\b", picture)}
    assert len(named) > 20
    assert [name for name in sorted(named) if not (ROOT / "mmcnb" / name).exists()] == []


def test_the_picture_of_the_layers_shows_those_that_are_checked():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    picture = (ROOT / "docs" / "pictures" / "layers.svg").read_text()
    shown = re.findall(r'<text x="\d+" y="(\d+)" class="code">(\w+)</text>', picture)
    rows = [{name for at, name in shown if at == y} for y in dict.fromkeys(y for y, _ in shown)]
    wanted = [set(re.findall(r"mmcnb\.(\w+)", layer)) for layer in layers]
    assert rows == [layer for layer in wanted if layer != {"__main__"}]


def public_names():
    for module_name in PUBLIC_MODULES:
        module = importlib.import_module(module_name)
        for name in module.__all__:
            thing = getattr(module, name)
            # Compiled routines wrap a function. The fields of a named tuple are explained beside them.
            function = inspect.isfunction(inspect.unwrap(thing))
            if function or (inspect.isclass(thing) and not issubclass(thing, tuple)):
                yield f"{thing.__module__}.{thing.__qualname__}"


def test_compiled_routines_are_among_the_public_names():
    names = set(public_names())
    for name in mmcnb.kernels.__all__:
        assert f"mmcnb.kernels.{name}" in names
        assert any(re.fullmatch(rf"mmcnb\.kernels\.[a-z]\w+\.{name}", other) for other in names)


@pytest.mark.parametrize("name", sorted(set(public_names())))
def test_public_names_are_documented(name):
    wrong = [f"{code}: {sentence}" for code, sentence in validate(name)["errors"] if code in NUMPYDOC_RULES]
    assert wrong == []


@pytest.mark.parametrize("name", sorted(set(public_names())))
def test_public_names_show_an_example(name):
    module, _, attribute = name.rpartition(".")
    thing = getattr(importlib.import_module(module), attribute)
    if inspect.isabstract(thing):
        assert not inspect.isfunction(thing)  # nothing to run: its subclasses show how they are made
    else:
        assert any(">>>" in line for line in get_doc_object(thing)["Examples"]), (
            f"{name} has no runnable example"
        )


def test_prose_is_counted_without_examples_and_code(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / ".ci"))
    prose = importlib.import_module("prose")
    source = '"""Rows.\n\n>>> where = .5\n\nThe end."""\nwhere = 1  # why\nname = "Give rows of .5 each."\n'
    text = "\n".join(prose.of_source(source))
    assert text.split() == ["Rows.", "The", "end.", "Give", "rows", "of", ".5", "each.", "why"]
    page = "Here `where` is.\n\n```python\nwhere = what\n```\n\n[There](what.md)\n"
    assert prose.of_page(page).split() == ["Here", "is.", "[There]"]
    counts = prose.per_thousand_words(f"{text} What was held where?")
    assert min(counts.values()) > 0


def test_limits_have_a_date_and_a_reason():
    limits = tomllib.loads((ROOT / ".ci" / "limits.toml").read_text())
    for name, limit in limits.items():
        assert limit.keys() == {"most", "since", "why"}, name
        assert len(limit["why"].split()) > 3, name
