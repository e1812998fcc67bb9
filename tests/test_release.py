"""What leaves with a release agrees: version, date, dependencies, and the packages of the wheel."""

import ast
import operator
import re
import sys
import tomllib
from pathlib import Path

import pytest

import mmcnb
from mmcnb.cli import build_parser

yaml = pytest.importorskip(
    "yaml", reason="YAML is read by a library that comes with Dask"
)
ROOT = Path(__file__).parent.parent
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = SETTINGS["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())
WORKFLOW = ROOT / ".github/workflows/release.yml"
TEMPLATES = ROOT / ".github/ISSUE_TEMPLATE"
# Names of modules that are not those of their packages.
PACKAGES = {
    "sklearn": "scikit-learn",
    "google_crc32c": "google-crc32c",
    "python_calamine": "python-calamine",
}
OF_USERS = {"polars"}  # imported only to give back a frame of the kind that came in


def names_of(requirements):
    return {re.match(r"[\w-]+", one)[0] for one in requirements}


def imported(folder):
    """The packages that the modules of a folder import."""
    for source in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(source.read_text())):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                yield node.module.partition(".")[0]


def test_version_and_date_are_those_of_the_changes():
    assert PROJECT["dynamic"] == ["version"]
    assert SETTINGS["tool"]["hatch"]["version"]["path"] == "mmcnb/__init__.py"
    assert CITATION["version"] == mmcnb.__version__
    heading = f"## {mmcnb.__version__} ({CITATION['date-released']})"
    assert f"\n{heading}\n" in (ROOT / "CHANGELOG.md").read_text()


def test_what_is_imported_is_declared_and_the_reverse():
    extras = ("plot", "data", "anndata", "hdf5", "dask", "remote", "excel")
    core = names_of(PROJECT["dependencies"])
    optional = set().union(
        *(names_of(PROJECT["optional-dependencies"][name]) for name in extras)
    )
    modules = {*imported("mmcnb"), *imported("data_loaders")}
    modules -= {*sys.stdlib_module_names, "mmcnb", "data_loaders"}
    packages = {PACKAGES.get(module, module) for module in modules}
    assert core <= packages <= core | optional | OF_USERS
    # Zarr reaches addresses through fsspec, and AnnData objects are made by their
    # users.
    assert optional - packages <= {"anndata", "fsspec"}


@pytest.mark.skipif(not TEMPLATES.exists(), reason="an sdist has no templates")
def test_templates_of_issues_name_what_exists():
    text = "".join(path.read_text() for path in TEMPLATES.glob("*.yml"))
    names = re.findall(r"\bmmcnb((?:\.\w+)+)", text)
    verbs = re.findall(r"\bmmcnb ([a-z]+)\"", text)
    assert names
    assert verbs
    for name in names:
        operator.attrgetter(name.removeprefix("."))(mmcnb)
    for verb in verbs:
        assert build_parser().parse_args([verb]).verb == verb


@pytest.mark.skipif(not WORKFLOW.exists(), reason="an sdist has no workflows")
def test_a_release_is_tried_on_each_python_before_it_is_published():
    jobs = yaml.safe_load(WORKFLOW.read_text())["jobs"]
    marker = "Programming Language :: Python :: "
    pythons = [
        one.removeprefix(marker)
        for one in PROJECT["classifiers"]
        if one.startswith(f"{marker}3.")
    ]
    assert jobs["try"]["strategy"]["matrix"]["python"] == pythons
    assert [jobs[name]["needs"] for name in ("build", "try", "publish")] == [
        "tests",
        "build",
        "try",
    ]
