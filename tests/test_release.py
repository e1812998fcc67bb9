"""What leaves with a release agrees: version, dependencies, the five papers, and the software paper."""

import re
import tomllib
from pathlib import Path

import pytest

import mmcnb

yaml = pytest.importorskip("yaml", reason="YAML is read by a library that comes with Dask")
ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
RECIPE = yaml.safe_load((ROOT / "recipe/recipe.yaml").read_text())
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())
WORKFLOW = ROOT / ".github/workflows/release.yml"
PAGES = [ROOT / "benchmarks/README.md", *sorted((ROOT / "docs").glob("*.md")), *(ROOT / "docs").glob("*.csv")]
_, FRONT, BODY = (ROOT / "paper/paper.md").read_text().split("---\n", 2)
BIB = {
    key: dict(re.findall(r"^  (\w+) = \{(.*)\},?$", fields, re.MULTILINE))
    for key, fields in re.findall(
        r"^@\w+\{(\w+),\n(.*?)^\}$", (ROOT / "paper/paper.bib").read_text(), re.DOTALL | re.MULTILINE
    )
}


def packages(requirements):
    """Names and bounds, however they are spaced."""
    return sorted(re.sub(r"[\s\[\]]", "", one).removesuffix("[array]") for one in requirements)


def pythons():
    marker = "Programming Language :: Python :: 3."
    named = [one for one in PROJECT["project"]["classifiers"] if one.startswith(marker)]
    return [one.removeprefix("Programming Language :: Python :: ") for one in named]


def test_the_recipe_has_the_dependencies_of_the_project():
    context, needs = RECIPE["context"], RECIPE["requirements"]
    assert PROJECT["project"]["requires-python"] == f">={context['python_min']}"
    python, *libraries = needs["run"]
    assert python == "python >=${{ python_min }}"
    assert packages(libraries) == packages(PROJECT["project"]["dependencies"])
    assert packages(needs["host"][2:]) == packages(PROJECT["build-system"]["requires"])


def test_the_recipe_describes_the_project():
    project, about = PROJECT["project"], RECIPE["about"]
    assert RECIPE["context"]["version"] == mmcnb.__version__
    assert RECIPE["build"]["python"]["entry_points"] == [
        f"{name} = {target}" for name, target in project["scripts"].items()
    ]
    assert (about["summary"], about["license"]) == (project["description"], project["license"])
    assert [about["license_file"]] == project["license-files"]
    assert {about["repository"], about["homepage"]} <= set(project["urls"].values())


def test_the_citation_has_title_version_and_date_of_the_release():
    assert (
        CITATION["title"]
        == f"mmcnb: {PROJECT['project']['description'][0].lower()}" + (PROJECT["project"]["description"][1:])
    )
    heading = f"## {CITATION['version']} ({CITATION['date-released']})"
    assert CITATION["version"] == mmcnb.__version__
    assert f"\n{heading}\n" in (ROOT / "CHANGELOG.md").read_text()
    assert {author["name"] for author in CITATION["authors"]} == {"The mmcnb developers"}


def test_the_citation_names_the_five_papers_as_the_paper_does():
    assert len(CITATION["references"]) == 5
    entries = {entry["title"]: entry for entry in BIB.values()}
    for paper in CITATION["references"]:
        entry = entries[paper["title"]]
        authors = [f"{one['family-names']}, {one['given-names']}" for one in paper["authors"]]
        assert entry["author"] == " and ".join(authors)
        assert int(entry["year"]) == paper["year"]


def test_the_paper_cites_what_it_lists():
    assert sorted(set(re.findall(r"@(\w+)", BODY))) == sorted(BIB)
    assert all(entry.keys() >= {"title", "author"} for entry in BIB.values())


def test_the_paper_has_the_form_of_a_software_paper():
    front = yaml.safe_load(FRONT)
    assert front["title"] == CITATION["title"]
    assert (ROOT / "paper" / front["bibliography"]).exists()
    assert {author["affiliation"] for author in front["authors"]} == {
        place["index"] for place in front["affiliations"]
    }
    headings = re.findall(r"^# (.+)$", BODY, re.MULTILINE)
    assert headings[:3] == ["Summary", "Statement of need", "State of the field"]
    assert headings[-1] == "References"
    assert 600 < len(BODY.split()) < 1000


@pytest.mark.parametrize("figure", sorted(set(re.findall(r"(?<![\w@])\d[\d.,]*\d", BODY))))
def test_a_figure_of_the_paper_stands_on_a_page(figure):
    pages = "\n".join(page.read_text() for page in PAGES if page.suffix == ".md")
    pages += "\n".join(page.read_text().replace(",", "\n") for page in PAGES if page.suffix == ".csv")
    assert re.search(rf"(?<![\d.,]){re.escape(figure)}(?![\d.,]*\d)", pages)


def test_sentences_of_the_paper_are_short():
    sentences = re.split(r"[.:;?]\s|\n\n|\n- ", re.sub(r"\[@\w+\]", "", BODY))
    assert [one for one in sentences if len(one.split()) > 30] == []


@pytest.mark.skipif(not WORKFLOW.exists(), reason="an sdist has no workflows")
def test_a_release_is_tried_on_each_python_before_it_is_published():
    jobs = yaml.safe_load(WORKFLOW.read_text())["jobs"]
    assert jobs["try"]["strategy"]["matrix"]["python"] == pythons()
    assert (jobs["build"]["needs"], jobs["try"]["needs"], jobs["publish"]["needs"]) == (
        "tests",
        "build",
        "try",
    )
    # PyPI trusts the workflow: no job has a password, and the others may not ask for a token.
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert "secrets." not in WORKFLOW.read_text()
    assert [name for name, job in jobs.items() if "permissions" in job] == ["publish"]
