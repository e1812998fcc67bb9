"""The page of a fit: whole HTML that asks for nothing, names that stay text, and the figures of `explain`."""

import re
import sys
from html import escape
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import mmcnb
from mmcnb.errors import InputError
from mmcnb.explanation.summary import strength_of

VOID = {"meta", "img", "br", "link", "input", "hr"}
ACTIVE = {
    "script",
    "iframe",
    "object",
    "embed",
    "form",
    "link",
    "a",
    "base",
    "img",
}
HEADINGS = ("h1", "h2", "h3", "h4")
ROWS = 240


class Page(HTMLParser):
    """Elements with their attributes and text; a tag that is not closed in its turn is an error."""

    def __init__(self, text):
        super().__init__()
        self.open = []
        self.elements = []
        self.texts = []
        self.table = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        assert len(dict(attributes)) == len(attributes)
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.table.append([])
        if tag in ("td", "th"):
            self.table[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.texts.append(data)
        if self.open and self.open[-1] in ("td", "th"):
            self.table[-1][-1] += data

    @property
    def text(self):
        return "".join(self.texts)

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


def planted(n=ROWS):
    """Three clusters of rows with numbers, a text, a flag and a date."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 3
    return pd.DataFrame(
        {
            "size": rng.normal(50 + 20 * y, 3),
            "weight": rng.normal(9 * (y == 1), 1),
            "kind": np.array(["red", "green", "blue"])[y],
            "new": (y == 2).astype(int),
            "since": pd.Timestamp("2020-01-01")
            + pd.to_timedelta(400 * y + rng.integers(0, 90, n), unit="D"),
        }
    )


def fitted(X, keep=None, **parameters):
    model = mmcnb.MaximumMarginClustering(3, random_state=0, **parameters)
    return model.fit(X, keep=keep)


def page_of(model, X, path, *labels):
    model.write_report(X, path, *labels)
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A frame, its model, and the text of the page."""
    X = planted()
    model = fitted(X, keep="since")
    return X, model, page_of(model, X, tmp_path_factory.mktemp("plain") / "page.html")


def assert_harmless(text):
    """One whole document without scripts, handlers or addresses, and readable without seeing it."""
    page = Page(text)
    assert text.startswith("<!DOCTYPE html>\n")
    assert not {tag for tag, _ in page.elements} & ACTIVE
    for _, attributes in page.elements:
        assert not [
            name
            for name in attributes
            if name.startswith("on") or name in ("href", "action")
        ]
        assert "src" not in attributes
    for box in page.all("input"):
        assert box["type"] == "checkbox"
        assert "checked" in box
    (policy,) = (one["content"] for one in page.all("meta") if one.get("http-equiv"))
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"
    style = text.partition("<style>")[2].partition("</style>")[0]
    assert not re.search(r"url\(|@import|//", style)
    levels = [HEADINGS.index(tag) for tag, _ in page.elements if tag in HEADINGS]
    assert levels[0] == 0
    assert levels.count(0) == 1
    assert max(np.diff(levels)) <= 1
    assert page.all("html") == [{"lang": "en"}]
    for drawing in page.all("svg"):
        assert drawing.get("aria-hidden") or drawing["role"] == "img"
        assert drawing.get("aria-hidden") or drawing["aria-label"]
    assert all(one["scope"] in ("row", "col") for one in page.all("th"))
    assert all(one.isprintable() or one == "\n" for one in text)
    return page


def table_of(text, heading):
    """The rows of the table below a heading, the first of which has the names of the columns."""
    return Page(
        text.partition(f"<h2>{heading}</h2>")[2]
        .partition("<h2>")[0]
        .partition("</main>")[0]
    ).table


def test_the_page_is_whole_and_has_the_verdict_and_the_sentences(plain):
    X, model, text = plain
    page = assert_harmless(text)
    assert page.all("title")
    assert "3 clusters of" in page.text
    assert f"{ROWS} rows, 5 columns" in page.text
    trust = model.report_["trust"]
    assert f"{trust['level']}: {trust['reason']}" in page.text
    explanation = model.explain(X)
    for sentence in explanation.clusters["sentence"]:
        assert sentence in page.text
    tells = strength_of(explanation.columns).groupby(explanation.columns["column"])
    first = re.search(r"Clusters differ most in(\w+), ", page.text)[1]
    assert tells.sum()[first] == pytest.approx(tells.sum().max(), rel=0.2)
    assert "(adjusted Rand index)" in page.text
    assert "J is large if" in page.text
    assert "evidence" not in page.text
    assert "known labels" not in page.text  # no labels were known
    assert "farther out than 99 % of the rows" in page.text
    for warning in model.report_["warnings"]:
        item = f"<li>{escape(warning)}</li>"
        assert (item in text) == (len(model.report_["warnings"]) > 1)
    for (_, kind), rows in explanation.rows.groupby(["cluster", "kind"]):
        assert (
            f"{kind.capitalize()} rows{', '.join(map(str, rows['row']))}" in page.text
        )
    assert (
        "mmcnb.MaximumMarginClustering(n_clusters=3, random_state=0)"
        ".fit(X, keep=['since'])" in page.text
    )
    for name, rows in (
        ("Layers", model.report_["layers"]),
        ("Candidates", model.report_["candidates"]),
    ):
        assert [row[0] for row in table_of(text, name)[1:]] == [
            str(next(iter(row.values()))) for row in rows
        ]


def test_the_heat_map_has_the_effects_of_the_columns_that_tell_most(plain):
    X, model, text = plain
    head, *rows = table_of(text, "Columns by cluster")
    assert head == ["column", "0", "1", "2"]
    columns = model.explain(X).columns
    names = columns["column"].where(
        columns["kind"] != "text", columns["column"] + " " + columns["category"]
    )
    effects = columns.set_index([names, columns["cluster"]])["effect"]
    assert rows[0][0] == names.iloc[0]
    assert {row[0] for row in rows} == set(names)
    for name, *values in rows:
        expected = [effects[name, k] for k in range(3)]
        assert values == [
            f"{effect:+.1f}" if abs(effect) >= 0.05 else "0" for effect in expected
        ]
    assert text.count('class="high"') == sum(effect > 0 for effect in effects)


def test_each_cluster_has_its_figures_in_their_units(plain):
    X, model, text = plain
    columns = model.explain(X).columns
    for k, part in enumerate(
        text.partition("<h2>Clusters</h2>")[2].split("<details>")[1:4]
    ):
        head, *rows = Page(
            part.partition("</details>")[0].partition("</summary>")[2]
        ).table
        assert head == ["column", "here", "others", "effect", "AUC"]
        figures = {row[0]: row[1:] for row in rows}
        expected = (
            columns[(columns["cluster"] == k) & (columns["kind"] != "text")]
            .set_index("column")
            .T
        )
        size = expected["size"]
        assert float(figures["size"][0]) == pytest.approx(size["median"], rel=0.01)
        assert float(figures["size"][3]) == pytest.approx(size["auc"], abs=0.001)
        sentence = part.partition("</summary>")[0]
        shown = f"size high (median {figures['size'][0]}, others {figures['size'][1]})"
        assert (shown in sentence) == ("size high" in sentence)
        assert figures["new"][0] == f"{(k == model.labels_[2]):.1%}"
        since = expected["since"]
        for date, median in zip(
            figures["since"], since[["median", "others_median"]], strict=False
        ):
            assert pd.Timestamp(date) == pd.Timestamp(round(median), unit="s").floor(
                "D"
            )


def test_the_page_says_that_no_row_is_at_an_edge_if_all_rows_tie(tmp_path):
    X = planted()[["size"]].to_numpy() + 1000.0 * (np.arange(ROWS) % 3)[:, None]
    model = fitted(X)
    assert "edge" not in set(model.explain(X).rows["kind"])
    text = page_of(model, X, tmp_path / "page.html")
    assert text.count("no row is near another cluster") == 3
    assert "Rows are counted from 0" in text


def test_constant_columns_are_left_out_of_the_tables(tmp_path):
    X = planted().assign(country="DE", year=2024.0)
    model = fitted(X, keep=["country", "year"])
    assert {"country", "year"} <= set(model.explain(X).columns["column"])
    text = page_of(model, X, tmp_path / "page.html")
    for heading in ("Clusters", "Columns by cluster"):
        names = {row[0] for row in table_of(text, heading)}
        assert {"size", "weight", "kind red"} <= names
        assert not {name for name in names if name.startswith(("country", "year"))}


def test_wide_tables_show_thirty_columns_at_most(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 120)) + 9 * (
        np.arange(120) % 3 == np.arange(ROWS)[:, None] % 3
    )
    text = page_of(
        mmcnb.UnsupervisedRLS(3, random_state=0).fit(X), X, tmp_path / "page.html"
    )
    rows = table_of(text, "Columns by cluster")[1:]
    assert len(rows) == len({row[0] for row in rows}) == 30
    # this method has neither layers nor candidates
    assert text.count("<p>None.</p>") == 2
    assert (
        text.count("<p>No tree, because no conditions on columns with names") == 1
    )  # 120 columns without names


HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=http://evil.example/x onerror=alert(1)>',
    "a\x1b[31mred\x07",
    "$title ${clusters}",
    "</style></summary>&amp;",
    "\u202eoverride",
    "{0} %s \\n",
]


def test_all_columns_left_out_are_on_the_page(tmp_path):
    """The warning names ten of them."""
    numbers = np.arange(60.0) % 2 * 9 + np.random.default_rng(0).normal(size=60)
    frame = pd.DataFrame({"size": numbers})
    for k in range(12):
        frame[f"note {k}"] = [f"{k} and {row}" for row in range(60)]
    with pytest.warns(mmcnb.ClusterWarning, match="and 2 more; keep="):
        model = mmcnb.CPMMC(random_state=0).fit(frame)
    model.write_report(frame, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "note 11 (60 texts in 60 rows)" in page


def test_names_of_data_stay_text(tmp_path):
    X = planted()
    X = X.rename(columns=dict(zip(X, HOSTILE, strict=False)))
    X[HOSTILE[2]] = X[HOSTILE[2]].map(
        dict(zip(("red", "green", "blue"), HOSTILE[3:6], strict=True))
    )
    X.index = [f"{HOSTILE[k % 7]} {k}" for k in range(ROWS)]
    model = fitted(X)
    labels = np.array(HOSTILE[:3])[model.labels_]
    text = page_of(model, X, tmp_path / "page.html", labels)
    page = assert_harmless(text)
    assert "<script>alert(1)</script>" in page.text
    assert "a\\x1b[31mred\\x07" in page.text
    assert "$title ${clusters}" in page.text
    assert "\\u202eoverride" in page.text
    assert [one["content"] for one in page.all("meta") if one.get("name") == "viewport"]


@pytest.mark.parametrize("form", ["list", "csr"])
def test_the_page_is_the_same_from_any_source(form, tmp_path):
    X = (
        np.random.default_rng(0).normal(size=(ROWS, 4)).round(2)
        + 9 * (np.arange(ROWS) % 2)[:, None]
    )
    X = X.astype(np.float32)
    model = mmcnb.CPMMC(n_init=1, random_state=0).fit(X)
    expected = page_of(model, X, tmp_path / "a.html")
    rows = {"list": X.tolist, "csr": lambda: sp.csr_array(X)}[form]()
    text = page_of(model, rows, tmp_path / "b.html")
    pictures = re.compile(r'<svg class="dots".*?</svg>|in \(.*?\)', re.DOTALL)
    assert pictures.sub("", text) == pictures.sub("", expected)
    assert page_of(model, X, tmp_path / "b.html", model.labels_) == expected


def test_noise_one_cluster_and_words_have_a_page(tmp_path):
    X = planted()
    model = fitted(X)
    text = page_of(
        model,
        X,
        tmp_path / "noise.html",
        np.where(np.arange(ROWS) < 9, -1, model.labels_),
    )
    assert "Noise (4 %): rows of no cluster." in assert_harmless(text).text
    assert "3 clusters of" in text
    text = page_of(model, X, tmp_path / "one.html", np.zeros(ROWS, int))
    assert "1 cluster of" in text
    assert "<p>No tree, because there is only one cluster.</p>" in text
    assert "Edge rows" not in text
    assert (
        "there is no other cluster to set it apart from" in assert_harmless(text).text
    )
    counts = np.random.default_rng(0).poisson(
        3 * np.eye(2)[np.arange(60) % 2].repeat(4, axis=1)
    )
    words = pd.DataFrame.sparse.from_spmatrix(
        sp.csr_array(counts), columns=[*"abcdefg", "<h>"]
    )
    model = mmcnb.UnsupervisedRLS(2, random_state=0).fit(words)
    marks = model.explain(words).words
    text = assert_harmless(page_of(model, words, tmp_path / "words.html")).text
    for cluster in (0, 1):
        assert f"Words{', '.join(marks['word'][marks['cluster'] == cluster])}" in text


def test_the_map_has_a_dot_and_a_check_box_for_all_that_it_shows(plain, tmp_path):
    X, model, text = plain
    page = Page(text)
    switches = {box["id"] for box in page.all("input")}
    assert {"show-c0", "show-c1", "show-c2", "show-far"} <= switches
    assert "show-gap" not in switches
    titles = re.findall("<title>(row .*?)</title>", text)
    expected = {f"row {row}, cluster {k}" for row, k in enumerate(model.labels_)}
    assert {*titles} == expected
    assert len(titles) == ROWS
    X = X.assign(size=X["size"].where(np.arange(ROWS) % 8 > 0))
    X.index = [f"<b> {row}" for row in range(ROWS)]
    noisy = np.where(np.arange(ROWS) < 9, -1, model.labels_)
    text = page_of(model, X, tmp_path / "page.html", noisy)
    switches = {box["id"] for box in assert_harmless(text).all("input")}
    names = ["c0", "c1", "c2", "noise", "gap", "far"]
    assert switches == {f"show-{name}" for name in names}
    assert "<title>row 0 (&lt;b&gt; 0), noise</title>" in text
    assert f"{1 / 8:.1%}" in text.partition('id="show-gap"')[2].partition("</label>")[0]


def test_each_check_box_hides_its_dots_on_a_screen(plain):
    _, _, text = plain
    rules = text.partition("@media screen {")[2].partition("}\n}")[0]
    for name in re.findall(r'id="show-([^"]*)"', text):
        rule = (
            f".map:has(#show-{name}:not(:checked)) .dots .{name} {{ display: none; }}"
        )
        assert rule in rules + "}"


def test_a_map_has_two_thousand_dots_at_most_and_one_color_for_small_clusters(tmp_path):
    X = np.random.default_rng(0).normal(size=(2500, 2))
    X[:, 0] += np.arange(2500) % 40 * 50
    model = mmcnb.UnsupervisedRLS(2, random_state=0).fit(X)
    text = page_of(model, X, tmp_path / "page.html", np.arange(2500) % 40)
    assert text.count("<title>row ") == 2000
    assert len(Page(text).all("input")) == 21
    assert "other clusters: " in text
    assert page_of(model, X, tmp_path / "page.html", np.arange(2500) % 40) == text


def luminance(color):
    """The relative luminance of WCAG 2 of a colour #rrggbb."""
    parts = np.array([int(color[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def contrast(first, second):
    bright, dark = sorted([luminance(first), luminance(second)])[::-1]
    return (bright + 0.05) / (dark + 0.05)


def test_text_and_dots_have_enough_contrast_on_light_and_dark_pages(plain):
    """WCAG 2.2 AA: 4.5 for text, 3 for graphics; the two colour schemes are in the style."""
    _, _, text = plain
    schemes = re.findall(r":root \{(.*?)\}", text.partition("</style>")[0], re.DOTALL)
    assert len(schemes) == 2
    fills = re.findall(r"\{ fill: (#\w{6});", text)
    assert len(fills) == len({*fills}) == 3
    for scheme in schemes:
        colors = dict(re.findall(r"--(\w+): (#\w{6});", scheme))
        for ground in (colors["ground"], colors["card"]):
            assert contrast(colors["ink"], ground) >= 4.5
            assert contrast(colors["pale"], ground) >= 4.5
            assert min(contrast(fill, ground) for fill in fills) >= 3


def test_the_page_needs_no_matplotlib(plain, tmp_path, monkeypatch):
    X, model, text = plain
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert page_of(model, X, tmp_path / "page.html") == text


def test_a_page_that_fails_leaves_the_one_that_was_there(plain, tmp_path):
    X, model, _ = plain
    path = tmp_path / "page.html"
    path.write_text("mine")
    with pytest.raises(InputError, match="one label for each row"):
        model.write_report(X, path, [0, 1])
    assert path.read_text() == "mine"
    with pytest.raises(InputError, match="create it first"):
        model.write_report(X, tmp_path / "no" / "page.html")
    assert [one.name for one in tmp_path.iterdir()] == ["page.html"]
