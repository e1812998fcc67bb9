"""The examples of the gallery have one form; a build of the pages runs them."""

import ast
import re
from pathlib import Path

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
