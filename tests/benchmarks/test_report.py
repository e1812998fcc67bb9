"""The report: what the page shows of frames, in figures and tables."""

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from benchmarks.__main__ import STUDIES, main
from benchmarks.published import published
from benchmarks.report import write_report
from benchmarks.report.figures import Panel, draw, spread, svg
from benchmarks.report.summary import PAPER, VIEWS, View, read, slopes, summarise
from benchmarks.report.tables import comparison
from mmcnb import InputError
from tests.benchmarks import frames
from tests.benchmarks.frames import failed, run, write

OURS = View(("SKMMC",))


class Page(HTMLParser):
    """What a reader finds on a page: text, tables with their cells, figures, addresses."""

    def __init__(self, text):
        super().__init__()
        self.text, self.tables, self.figures, self.addresses, self.ids, self.open = [], [], [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.open.append(tag)
        self.ids += [given["id"]] if "id" in given else []
        self.addresses += [given[name] for name in ("src", "href", "xlink:href") if name in given]
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


def page_of(folder):
    return Page(write_report(folder).read_text(encoding="utf-8"))


def test_facts_of_the_data_stand_beside_the_published_ones(tmp_path):
    rows = run("heart", "", {"sparsity": 0.75}, part="facts") + run("heart", "SKMMC", {"balanced_error": 0.2})
    page = page_of(write(tmp_path, "small", rows))
    facts = next(table for table in page.tables if any("the data" in row for row in table))
    sparsity, protocol = facts[0].index("Sparsity"), facts[0].index("protocol")
    found = {row[protocol]: row[sparsity] for row in facts[1:]}
    assert found == {"label-free": "75.00 % (1)", "published": "75.10 %"}


def points_of(line, x, y):
    return pd.DataFrame({"line": line, "style": 0, "fill": "full", "x": x, "y": y, "sd": 0.0})


def summary_of(folder, study, rows, view=OURS):
    return summarise(read(write(folder, study, rows) / f"{study}.parquet")._replace(view=view))


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    return page_of(frames.everything(tmp_path_factory.mktemp("frames")))


def test_every_study_has_its_section_figures_and_tables(everything):
    assert {"small", "mnist", "adult", "eta", "mkc", "startup"} <= set(everything.ids)
    assert len(everything.figures) == 1 + 1 + 4 + 2 + 1 + 2
    for tables in everything.tables:
        assert len({len(row) for row in tables}) == 1
    text = " ".join(everything.text)
    assert "Scale quick: fewer rows or repeats" in text
    assert "python -m benchmarks eta --quick" in text
    assert "232 runs, 1 failed" in text
    assert ["a9a: error", "26", "<= 24.1", "%", "missed"] in [
        row for table in everything.tables for row in table
    ]


def test_views_are_of_studies_and_papers_that_exist():
    assert set(VIEWS) <= set(STUDIES)
    assert {paper for view in VIEWS.values() for paper in view.papers} <= set(published()["paper"])


def test_the_page_never_says_that_something_is_not_a_number(everything):
    assert not re.search(r"\b(nan|None|inf|NaT)\b", " ".join(everything.text), re.IGNORECASE)


def test_the_page_asks_for_nothing_from_outside(everything):
    assert [address for address in everything.addresses if not address.startswith(("#", "data:"))] == []


def test_no_id_is_given_twice(everything):
    assert len(everything.ids) == len(set(everything.ids))


def test_texts_of_a_frame_are_escaped(tmp_path):
    evil = '<script>alert("&")</script>'
    rows = run(evil, evil, {"error": 0.1}, width=evil) + run(evil, "k-means", {"error": 0.2})
    rows += failed(evil, "k-means", evil, protocol=evil)
    raw = write_report(write(tmp_path, "made-up", rows)).read_text(encoding="utf-8")
    assert "<script>alert" not in raw
    assert Page(raw).tables[0][1][0] == evil


def test_the_order_of_the_rows_does_not_change_the_page(tmp_path):
    one, other = (
        write_report(write(tmp_path / str(seed), "mnist", frames.mnist(), shuffled=seed)) for seed in (1, 2)
    )
    assert one.read_text(encoding="utf-8") == other.read_text(encoding="utf-8")


def test_data_sets_stand_by_rows_and_ours_before_the_others(tmp_path):
    rows = [
        row
        for name, n in (("large", 900), ("few", 20))
        for method in ("k-means", "CPMMC", "SKMMC")
        for row in run(name, method, {"balanced_error": 0.1}, n=n)
    ]
    summary = summary_of(tmp_path, "small", rows)
    errors = summary[summary["metric"] == "balanced_error"]
    assert list(dict.fromkeys(errors["dataset"])) == ["few", "large"]
    assert list(errors["method"][:3]) == ["SKMMC", "CPMMC", "k-means"]


def test_means_deviations_and_numbers_of_seeds_are_those_of_the_runs(tmp_path):
    values = [0.1, 0.2, 0.4]
    rows = [row for seed, value in enumerate(values) for row in run("heart", "SKMMC", {"error": value}, seed)]
    row = summary_of(tmp_path, "small", rows).set_index("metric").loc["error"]
    assert row["mean"] == pytest.approx(np.mean(values))
    assert row["sd"] == pytest.approx(np.std(values, ddof=1))
    assert row["count"] == 3


@pytest.mark.parametrize(("metric", "chosen"), [("balanced_error", 0.1), ("accuracy", 0.3)])
def test_the_papers_protocol_takes_the_best_mean_of_a_grid(metric, chosen, tmp_path):
    rows = [
        row
        for seed in range(2)
        for value in (0.1, 0.2, 0.3)
        for row in run("heart", "SKMMC", {metric: value}, seed, PAPER, width=value)
    ]
    found = summary_of(tmp_path, "small", rows).set_index("metric").loc[[metric]]
    assert list(found["mean"]) == [pytest.approx(chosen)]
    assert list(found["method"]) == ["SKMMC"]


def test_without_classes_nothing_is_chosen(tmp_path):
    rows = [
        row
        for width in (2, 10)
        for row in run("heart", "SKMMC", {"balanced_error": 0.01 * width}, width=width, C=10)
    ]
    summary = summary_of(tmp_path, "small", rows)
    assert list(summary["method"].unique()) == ["SKMMC, width=2", "SKMMC, width=10"]


def test_a_swept_parameter_is_kept_and_the_others_are_chosen(tmp_path):
    rows = [
        row
        for eta in (0.1, 1.0)
        for width in (1, 2)
        for row in run(
            "heart", "SKMMC", {"balanced_error": eta / 10 * width}, protocol=PAPER, eta=eta, width=width
        )
    ]
    summary = summary_of(tmp_path, "eta", rows, VIEWS["eta"])
    errors = summary[summary["metric"] == "balanced_error"]
    assert list(errors["x"]) == [0.1, 1.0]
    assert list(errors["mean"]) == pytest.approx([0.01, 0.1])


def test_published_figures_stand_beside_ours_for_the_papers_of_a_study_alone(tmp_path):
    rows = [
        row
        for protocol in (PAPER, "label-free")
        for row in run("heart", "SKMMC", {"balanced_error": 0.2}, protocol=protocol)
    ]
    table = summary_of(tmp_path, "small", rows, VIEWS["small"])
    errors = table[table["metric"] == "balanced_error"].set_index("protocol")["mean"]
    assert errors.to_dict() == pytest.approx({PAPER: 0.2, "published": 0.2825, "label-free": 0.2})
    assert "published" not in set(summary_of(tmp_path, "small", rows)["protocol"])


def test_the_best_of_a_row_is_marked_by_protocol(tmp_path):
    rows = [
        row
        for method, errors in {"SKMMC": (0.3, 0.1), "k-means": (0.2, 0.4)}.items()
        for protocol, error in zip((PAPER, "label-free"), errors, strict=True)
        for row in run("made-up", method, {"balanced_error": error}, protocol=protocol)
    ]
    table = comparison(summary_of(tmp_path, "small", rows), "balanced_error")
    best = [name for name, found in zip(table.texts.columns[1:], table.best.iloc[0], strict=True) if found]
    assert best == ["SKMMC, label-free", "k-means, paper"]


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_the_exponent_of_the_rows_is_found_with_its_interval(power):
    rng = np.random.default_rng(0)
    n = np.geomspace(100, 1e5, 9)
    noise = np.exp(0.05 * rng.standard_normal(9))
    table = pd.DataFrame({"method": "SKMMC", "protocol": PAPER, "n": n, "mean": 3 * n**power * noise})
    fit = slopes(table).iloc[0]
    assert fit["low"] < power < fit["high"]
    assert fit["high"] - fit["low"] < 0.1
    assert slopes(table.iloc[:2]).empty
    points = points_of("SKMMC", n, table["mean"])
    axes = draw(Panel("", points, "rows", log_x=True, log_y=True, fitted=True), Figure())
    x, y = axes.lines[-1].get_data()
    assert np.diff(np.log(y)) / np.diff(np.log(x)) == pytest.approx(fit["slope"])
    assert (y / x**power)[0] == pytest.approx(3, rel=0.3)


def test_failed_runs_are_listed_with_their_reasons(tmp_path):
    rows = run("heart", "SKMMC", {"balanced_error": 0.2}) + failed("german", "SDPMMC", "too many rows")
    page = page_of(write(tmp_path, "small", rows))
    listed = next(table for table in page.tables if "reason" in table[0])
    assert listed[1][1] == "german"
    assert listed[1][-1] == "too many rows"


def test_a_study_of_failures_alone_still_has_a_section(tmp_path):
    page = page_of(write(tmp_path, "small", failed("german", "SDPMMC", "too many rows")))
    assert "Every run failed." in page.text
    assert any("too many rows" in row for table in page.tables for row in table)


def test_a_folder_without_frames_says_what_to_run(tmp_path):
    with pytest.raises(InputError, match="run python -m benchmarks STUDY"):
        write_report(tmp_path)


def _cut(path):
    path.write_bytes(path.read_bytes()[:-100])


def _lacking(path):
    pd.read_parquet(path).drop(columns="digest").to_parquet(path)


def _text_for_numbers(path):
    pd.read_parquet(path).assign(seconds="soon").to_parquet(path)


def _twice(path):
    pd.concat([pd.read_parquet(path)] * 2).to_parquet(path)


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (_cut, "not a readable Parquet file"),
        (_lacking, "lacks digest"),
        (_text_for_numbers, "text where numbers belong"),
        (_twice, "twice"),
    ],
)
def test_a_spoilt_frame_is_one_sentence_with_file_and_remedy(spoil, told, tmp_path):
    spoil(write(tmp_path, "small", run("heart", "SKMMC", {"balanced_error": 0.2})) / "small.parquet")
    with pytest.raises(InputError, match=told) as caught:
        write_report(tmp_path)
    assert str(tmp_path / "small.parquet") in str(caught.value)
    assert "delete it and run python -m benchmarks small again" in str(caught.value)
    assert not (tmp_path / "report.html").exists()


@pytest.mark.parametrize("text", ["a,b\n1,2\n", ""])
def test_goals_of_another_format_are_refused(tmp_path, text):
    write(tmp_path, "small", run("heart", "SKMMC", {"balanced_error": 0.2}))
    (tmp_path / "small-goals.csv").write_text(text)
    with pytest.raises(InputError, match=r"small-goals\.csv is no table of goals"):
        write_report(tmp_path)


@pytest.mark.parametrize("line", ["{not a journal", "7", ""])
def test_a_journal_with_a_damaged_first_line_is_refused(tmp_path, line):
    write(tmp_path, "small", run("heart", "SKMMC", {"balanced_error": 0.2}))
    (tmp_path / "small.jsonl").write_text(f"{line}\n")
    with pytest.raises(InputError, match=r"small\.jsonl has a damaged first line; delete it and run"):
        write_report(tmp_path)


def test_the_figures_of_the_documents_are_written_beside_the_page(tmp_path):
    write(tmp_path, "adult", frames.adult())
    with pytest.raises(InputError, match=r"mnist\.png needs the study mnist"):
        write_report(tmp_path, tmp_path / "docs")
    assert not (tmp_path / "report.html").exists()
    write(tmp_path, "mnist", frames.mnist())
    write_report(tmp_path, tmp_path / "docs")
    for name in ("adult", "mnist"):
        assert (tmp_path / "docs" / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_the_command_prints_the_page_or_one_sentence(tmp_path, capsys):
    assert main(["report", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("error: report: there is no frame of a study")
    write(tmp_path, "small", run("heart", "SKMMC", {"balanced_error": 0.2}))
    assert main(["report", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "report.html")


def test_a_figure_takes_its_colours_from_the_page():
    points = points_of("a & <b>", [1, 10, 100], [1, 2, 3])
    text = svg(Panel('said "so"', points, "rows", "error", log_x=True), "prefix")
    assert "currentColor" in text
    assert "var(--series-0)" in text
    assert not re.search(r"#[0-9a-f]{6}", text)
    assert 'aria-label="said &quot;so&quot;"' in text
    assert "a &amp; &lt;b&gt;" in text


@pytest.mark.parametrize("places", [[0.5], [0.1, 0.1, 0.1], [0.9, 1.0, 0.95, 0.2], [0.0, 0.0, 1.0, 1.0]])
def test_names_at_the_ends_of_lines_stay_apart_and_in_order(places):
    moved = spread(places, 0.1, 0.0, 1.0)
    assert np.diff(sorted(moved)).min(initial=1.0) >= 0.1 - 1e-9
    assert np.argsort(moved, kind="stable").tolist() == np.argsort(places, kind="stable").tolist()
    assert min(moved) >= -1e-9
    assert max(moved) <= 1 + 1e-9
