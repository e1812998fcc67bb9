"""The examples of the gallery have one form; a build of the pages runs them."""

import ast
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "docs" / "examples").rglob("plot_*.py"))


def test_there_are_a_dozen_in_sections_with_a_header():
    assert len(EXAMPLES) >= 12
    assert all((path.parent / "GALLERY_HEADER.rst").exists() for path in EXAMPLES)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_asks_a_question_and_shows_a_picture(path):
    text = path.read_text()
    title, line, *_ = ast.get_docstring(ast.parse(text)).splitlines()
    assert title.endswith("?")
    assert line == "=" * len(title)
    assert "plt.show()" in text
    code = [line for line in text.partition('"""\n\n')[2].splitlines() if line and not line.startswith("#")]
    assert 12 <= len(code) <= 60


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_its_prose_is_short_sentences(path):
    text = path.read_text()
    prose = [ast.get_docstring(ast.parse(text)).partition("\n\n")[2]]
    prose += [block.replace("# ", "") for block in re.findall(r"^# %%\n((?:# .*\n)+)", text, re.MULTILINE)]
    assert len(prose) >= 3
    sentences = [sentence.split() for block in prose for sentence in re.split(r"[.:?!]\s", block)]
    assert [" ".join(words) for words in sentences if len(words) > 30] == []


def run(name: str, monkeypatch) -> dict:
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="the pages need the extra 'plot'")
    monkeypatch.setattr(pyplot, "show", lambda: pyplot.close("all"))
    (path,) = [path for path in EXAMPLES if path.stem == name]
    return runpy.run_path(str(path))


@pytest.mark.slow
def test_skmmc_from_parts_has_the_bits_of_the_estimator(monkeypatch):
    page = run("plot_skmmc_from_parts", monkeypatch)
    np.testing.assert_array_equal(page["model"].model_.basis, page["basis"])
    np.testing.assert_array_equal(np.abs(page["model"].model_.rule.coef), np.abs(page["coef"]))


@pytest.mark.slow
def test_the_steps_of_the_papers_find_the_moons(monkeypatch):
    page = run("plot_steps_of_the_papers", monkeypatch)
    found = page["adjusted_rand_score"](page["truth"], page["y"])
    assert found > 0.9
    exact = page["kernel"](page["X"], page["X"])
    assert np.abs(page["F"] @ page["F"].T - exact).max() < 0.01
