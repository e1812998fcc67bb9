"""Words that readers search for are on the pages that answer them; the first page leads to each task."""

import re
from pathlib import Path

import pytest
from sphinx.search.en import SearchEnglish

DOCS = Path(__file__).parent.parent / "docs"
SEARCHED = {
    "outlier": "how_many_clusters.md",
    "explain": "reading_a_fit.md",
    "centroid": "coming_from.md",
    "embedding": "which_method.md",
    "incremental": "reading_a_fit.md",
}
# The words of a link on the first page, and code that the reader needs there.
TASKS = {
    "choose k": "n_clusters=(5, 30)",
    "label new rows": "model.predict(",
    "explain clusters": "model.explain(X)",
    "exclude noise": 'noise="auto"',
    "update a model": "model.update(X_new)",
    "a store larger than memory": "--memory-limit 1GiB",
    "text": "TfidfTransformer",
    "cells": "mmcnb.annotate",
}


def stems(text):
    """The words of a text as the search of the pages keeps and compares them."""
    english = SearchEnglish({})
    return {english.stem(word.lower()) for word in english.split(text)}


def part(target):
    """What a reader sees behind a link: a page from its anchor on to the next heading, or an example."""
    path, _, anchor = target.partition("#")
    if path.startswith("auto_examples/"):
        return (DOCS / path.replace("auto_examples", "examples")).with_suffix(".py").read_text()
    parts = re.split(r"^(?=#+ )", (DOCS / path).read_text(), flags=re.MULTILINE)
    named = {re.sub(r"\W+", "-", one.partition("\n")[0].strip("# ").lower()): one for one in parts if one}
    return named[anchor] if anchor else "".join(parts)


@pytest.mark.parametrize(("word", "page"), SEARCHED.items())
def test_a_word_that_readers_search_for_is_found_on_its_page(word, page):
    assert stems(word) <= stems((DOCS / page).read_text())


@pytest.mark.parametrize(("task", "code"), TASKS.items())
def test_the_first_page_leads_to_a_task_in_one_click(task, code):
    links = re.findall(r"\[([^\]]+)\]\(([^)]+)\)", (DOCS / "index.md").read_text())
    targets = {" ".join(words.split()): target for words, target in links}
    assert code in part(targets[task])
