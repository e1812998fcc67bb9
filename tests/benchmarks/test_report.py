"""The report: what the page shows of frames, in figures and tables."""

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from benchmarks.__main__ import main
from benchmarks.report import write_report
from benchmarks.report.figures import curves
from benchmarks.report.summary import VIEWS, View, read, summarise
from benchmarks.report.tables import comparison, growth
from mmcnb import InputError
from tests.benchmarks import frames
from tests.benchmarks.frames import failed, run, write

pytestmark = pytest.mark.slow


class Page(HTMLParser):
    """What a reader finds on a page: text, tables with their cells, figures, addresses."""

    def __init__(self, path):
        super().__init__()
        self.text = []
        self.tables = []
        self.figures = []
        self.addresses = []
        self.ids = []
        self.open = []
        self.source = path.read_text(encoding="utf-8")
        self.feed(self.source)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.open.append(tag)
        self.ids += [given["id"]] if "id" in given else []
        self.addresses += [
            given[name] for name in ("src", "href", "xlink:href") if name in given
        ]
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("th", "td"):
            self.tables[-1][-1].append("")
        elif tag == "svg":
            self.figures.append(given["aria-label"])

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        if {"style", "script"} & set(self.open):
            return
        self.text.append(data)
        if {"th", "td"} & set(self.open):
            self.tables[-1][-1][-1] += data

    @property
    def rows(self):
        return [row for table in self.tables for row in table]


def summary_of(folder, study, rows, metric):
    """The summary of a measure."""
    summary = summarise(read(write(folder, study, rows)))
    return summary[summary["metric"] == metric]


def test_the_page_shows_each_study_and_asks_for_nothing_from_outside(tmp_path):
    evil = '<script>alert("&")</script>'
    write(
        tmp_path,
        "mnist",
        frames.mnist() + failed("mnist-3v8", "SDPMMC", "too many rows"),
    )
    write(tmp_path, "adult", frames.adult())
    write(tmp_path, "eta", frames.eta(), scale="quick")
    write(
        tmp_path,
        "startup",
        run(evil, evil, {"": np.nan}, width=evil) + failed(evil, "k-means", evil),
    )
    goals = pd.DataFrame(
        {"goal": ["a9a: error"], "figure": [26.0], "bound": ["<= 24.1"], "unit": ["%"]}
    )
    goals.assign(verdict="missed").to_csv(tmp_path / "adult-goals.csv", index=False)
    page = Page(write_report(tmp_path, tmp_path / "docs"))
    assert {"mnist", "adult", "eta", "startup"} <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    assert len(page.figures) == 5
    assert all(len({len(row) for row in table}) == 1 for table in page.tables)
    text = " ".join(page.text)
    assert "Scale quick: fewer rows or repeats" in text
    assert "python -m benchmarks eta --quick" in text
    assert "60 runs, 1 failed" in text
    assert ["a9a: error", "26", "<= 24.1", "%", "missed"] in page.rows
    assert any(
        row[1] == "mnist-3v8" and row[-1] == "too many rows"
        for row in page.rows
        if len(row) > 1
    )
    assert "<script>alert" not in page.source
    assert evil in text
    assert not re.search(r"\b(nan|None|inf|NaT)\b", text, re.IGNORECASE)
    assert [
        address for address in page.addresses if not address.startswith(("#", "data:"))
    ] == []
    for name in ("adult", "mnist"):
        assert (tmp_path / f"docs/{name}.png").read_bytes().startswith(b"\x89PNG")


def test_the_order_of_the_rows_does_not_change_the_page(tmp_path):
    rows = frames.mnist()
    pages = [
        write_report(write(tmp_path, "mnist", one).parent).read_text()
        for one in (rows, rows[::-1])
    ]
    assert pages[0] == pages[1]


@pytest.mark.parametrize(
    ("metric", "chosen"), [("balanced_error", 0.125), ("accuracy", 0.5)]
)
def test_the_papers_protocol_takes_the_best_mean_of_a_grid(metric, chosen, tmp_path):
    rows = []
    for seed in range(3):
        for value in (0.125, 0.25, 0.5):
            rows += run(
                "heart", "SKMMC", {metric: value + seed / 100}, seed, width=value
            )
    (row,) = summary_of(tmp_path, "scm", rows, metric).itertuples()
    assert (row.method, row.count) == ("SKMMC", 3)
    assert row.mean == pytest.approx(chosen + 0.01)
    assert row.sd == pytest.approx(0.01)


def test_without_classes_nothing_is_chosen(tmp_path):
    rows = []
    for width in (2, 10):
        rows += run(
            "heart",
            "SKMMC",
            {"error": 0.01 * width},
            protocol="label-free",
            width=width,
            C=10,
        )
    summary = summary_of(tmp_path, "small", rows, "error")
    assert list(summary["method"]) == ["SKMMC, width=2", "SKMMC, width=10"]


def test_a_swept_parameter_is_kept_and_the_others_are_chosen(tmp_path):
    rows = []
    for eta in (0.1, 1.0):
        for width in (1, 2):
            rows += run(
                "heart",
                "SKMMC",
                {"balanced_error": eta / 10 * width},
                eta=eta,
                width=width,
            )
    summary = summary_of(tmp_path, "eta", rows, "balanced_error")
    assert list(summary["x"]) == [0.1, 1.0]
    assert list(summary["mean"]) == pytest.approx([0.01, 0.1])


def test_published_figures_stand_beside_ours_for_the_papers_of_a_study_alone(tmp_path):
    rows = run("heart", "SKMMC", {"balanced_error": 0.2})
    summary = summary_of(tmp_path, "small", rows, "balanced_error").set_index(
        "protocol"
    )
    assert summary["mean"].to_dict() == pytest.approx(
        {"paper": 0.2, "published": 0.2825}
    )
    other = summarise(
        read(write(tmp_path, "small", rows))._replace(view=View(("SKMMC",)))
    )
    assert "published" not in set(other["protocol"])
    assert "published" not in set(
        summary_of(tmp_path, "scm", rows, "balanced_error")["protocol"]
    )
    assert VIEWS["small"].papers == ("SKMMC",)


def test_the_best_of_a_row_is_marked_by_protocol(tmp_path):
    rows = []
    for method, errors in {"SKMMC": (0.3, 0.1), "k-means": (0.2, 0.4)}.items():
        for protocol, error in zip(("paper", "label-free"), errors, strict=True):
            rows += run("made-up", method, {"balanced_error": error}, protocol=protocol)
    table = comparison(
        summary_of(tmp_path, "small", rows, "balanced_error"), "balanced_error"
    )
    best = [
        name
        for name, marked in zip(
            table.texts.columns[1:], table.best.iloc[0], strict=True
        )
        if marked
    ]
    assert best == ["SKMMC, label-free", "k-means, paper"]


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda frame: frame.drop(columns="digest"), "lacks digest"),
        (lambda frame: frame.assign(seconds="soon"), "text where numbers belong"),
        (lambda frame: pd.concat([frame, frame]), "twice"),
        (None, "not a readable Parquet file"),
    ],
)
def test_a_spoilt_frame_is_one_sentence_with_file_and_remedy(spoil, sentence, tmp_path):
    path = write(tmp_path, "small", run("heart", "SKMMC", {"balanced_error": 0.2}))
    if spoil is None:
        path.write_bytes(path.read_bytes()[:-100])
    else:
        spoil(pd.read_parquet(path)).to_parquet(path)
    with pytest.raises(InputError, match=sentence) as caught:
        write_report(tmp_path)
    assert str(path) in str(caught.value)
    assert "delete it and run python -m benchmarks small again" in str(caught.value)
    assert not (tmp_path / "report.html").exists()


def test_the_command_prints_the_page_and_a_study_of_failures_has_a_section(
    tmp_path, capsys
):
    write(tmp_path, "small", failed("german", "SDPMMC", "too many rows"))
    with pytest.raises(InputError, match=r"adult\.png needs the study adult"):
        write_report(tmp_path, tmp_path / "docs")
    assert main(["report", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "report.html")
    assert "Every run failed." in Page(tmp_path / "report.html").text


def test_slopes_are_told_with_their_interval_and_only_where_time_grows(tmp_path):
    """Time of SKMMC below a size is that of its sample; others grow from the start."""
    rows = summarise(read(frames.write(tmp_path, "adult", frames.adult())))
    for most, ours in ((0, "SKMMC: 0.90 (0.90 to 0.90)"), (30_000, "SKMMC")):
        growth_from = {"SKMMC": most}
        panels = curves(rows, "seconds", "n", "rows", "method", "", growth_from)
        (panel,) = panels
        assert {*panel.points["line"]} == {ours, "IterSVR: 2.00 (2.00 to 2.00)"}
        assert ("sample of fixed size" in panel.caption) == (most > 0)
        growing = panel.points[panel.points["grows"]]
        assert growing["n"].min() == 1605
        table = growth(rows, "", growth_from)
        methods = {0: {"SKMMC", "IterSVR"}, 30_000: {"IterSVR"}}
        assert {*table.texts["method"]} == methods[most]
