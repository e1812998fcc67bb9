"""`mmcnb explain` and `mmcnb report`: what the methods of a model say, from files."""

import json

import pytest

import mmcnb


@pytest.mark.parametrize("labels", ["", "--labels customers-labels.csv"])
def test_explain_prints_the_sentences_of_the_method(labels, folder, printed, report_of):
    expected = mmcnb.load("customers.model").explain("customers.csv")
    rules = "\n".join(expected.rules["sentence"])
    lines = f"{expected}\n\nRules:\n{rules}\n\nTree:\n{expected.tree}\n"
    assert printed(f"explain customers.model customers.csv {labels}") == lines
    assert report_of(f"explain customers.model customers.csv {labels}") == json.loads(
        json.dumps(expected.to_dict())
    )


def test_report_writes_the_page_of_the_method(folder, printed, report_of):
    command = "report customers.model customers.csv --out page.html"
    assert printed(command) == "page.html: open it in a browser\n"
    page = (folder / "page.html").read_text(encoding="utf-8")
    mmcnb.load("customers.model").write_report("customers.csv", "again.html")
    assert (folder / "again.html").read_text(encoding="utf-8") == page
    more = "--labels customers-labels.csv --overwrite --jobs 1 --memory-limit 8GiB"
    report = report_of(f"{command} {more}")
    assert report == {"page": "page.html"}
    of_labels = (folder / "page.html").read_text(encoding="utf-8")
    assert "--labels customers-labels.csv" in of_labels
    parts = [text.partition("<h2>How to repeat")[0] for text in (page, of_labels)]
    assert parts[0] == parts[1]
