"""Sentences about clusters: numbers, dates and shares as people write them, and what they leave out."""

import numpy as np
import pandas as pd
import pytest

from mmcnb.explanation.sentences import (
    percent,
    phrase,
    phrases,
    sentences,
    two_dates,
    two_numbers,
)
from mmcnb.explanation.summary import FIGURES


def columns_of(*rows):
    """A table of columns of cluster 0; each row has some figures."""
    usual = dict.fromkeys(FIGURES, 0.0) | {
        "cluster": 0,
        "category": "",
        "kind": "number",
        "near": 0.5,
    }
    return pd.DataFrame([usual | row for row in rows])


def phrase_of(**figures):
    return phrase(next(columns_of(figures).itertuples()))


@pytest.mark.parametrize(
    ("pair", "words"),
    [
        ((2021.0, 1998.0), ("2021", "1998")),
        ((1_234_567.0, 12.0), ("1,230,000", "12")),
        ((0.1 + 0.2, 0.05), ("0.3", "0.05")),
        ((101_325.25, 101_328.5), ("101,325", "101,328")),
        ((1e-7, 2e-7), ("1e-07", "2e-07")),
        ((-3.14159, 0.0), ("-3.14", "0")),
        ((1 / 3, np.nextafter(1 / 3, 1)), ("0.333333333333", "0.333333333333")),
    ],
)
def test_numbers_have_the_digits_that_tell_them_apart(pair, words):
    assert two_numbers(*pair) == words


@pytest.mark.parametrize("share", [0, 1e-12, 3e-5, 0.0096, 0.5, 0.99997, 1])
def test_a_share_is_none_or_all_only_if_it_nearly_is(share):
    text = percent(share)
    assert float(text[:-2]) / 100 == pytest.approx(share, abs=5e-3)
    assert len(text) <= len("99.997 %")
    assert (text in ("0 %", "100 %")) == (min(share, 1 - share) < 1e-6)


def test_times_less_than_a_day_apart_have_hours():
    day = 1_709_280_000.0
    assert two_dates(day, day + 90_000) == ("2024-03-01", "2024-03-02")
    assert two_dates(day, day + 300) == ("2024-03-01 08:00:00", "2024-03-01 08:05:00")


def test_high_and_low_are_those_of_the_numbers_that_are_shown():
    """Where both medians are 0, the mean may say otherwise than the ranks."""
    figures = {"column": "x", "auc": 0.7, "mean": 1.0, "others_mean": 5.0}
    assert phrase_of(**figures) == "x low (mean 1, others 5)"
    assert (
        phrase_of(**figures, median=2.0, others_median=1.0)
        == "x high (median 2, others 1)"
    )


def test_a_column_is_near_a_value_only_if_others_are_farther():
    figures = {
        "column": "x",
        "auc": 0.5,
        "near": 0.9,
        "median": 18.0,
        "others_median": 17.0,
        "spread": 2.0,
    }
    assert (
        phrase_of(**figures, others_spread=7.0)
        == "x near 18 (half within 2, others within 7)"
    )
    assert "near" not in phrase_of(**figures, others_spread=2.0)


def test_a_value_that_most_rows_share_is_told_with_its_shares():
    figures = {"auc": 0.5, "near": 0.8, "share": 0.62, "others_share": 0.2}
    assert (
        phrase_of(column="errors", median=1.0, others_spread=1.0, **figures)
        == "errors mostly 1 (62 %, others 20 %)"
    )
    day = 86_400.0
    joined = {"column": "joined", "kind": "date", "median": 366 * day}
    assert (
        phrase_of(**joined, others_spread=90 * day, **figures)
        == "joined mostly 1971-01-02 (62 %, others 20 %)"
    )


def clusters_of(*tables):
    """Clusters, and a table of their columns, each of which is a dict of figures by name."""
    rows = []
    for cluster, table in enumerate(tables):
        for name, figures in table.items():
            rows.append({"cluster": cluster, "column": name, **figures})
    clusters = pd.DataFrame({"cluster": range(len(tables)), "share": 1 / len(tables)})
    return clusters, columns_of(*rows)


def number(auc, median, spread=1.0):
    return {"auc": auc, "median": median, "others_median": 5.0, "spread": spread}


def test_clusters_whose_sentences_name_the_same_columns_are_told_apart():
    """The column in which two such clusters differ most is added to both sentences."""
    alike = {"spend": number(0.9, 90.0), "visits": number(0.52, 6.0)}
    tables = [
        alike | {"calls": number(0.6, 9.0), "age": number(0.45, 4.0)},
        alike | {"calls": number(0.4, 1.0), "age": number(0.45, 4.0)},
        {"spend": number(0.1, 2.0), "calls": number(0.4, 1.0)},
    ]
    clusters, columns = clusters_of(*tables)
    first, second, third = sentences(clusters, columns, None)
    spend = "spend high (median 90, others 5)"
    assert first.endswith(f": {spend}, calls high (median 9, others 5).")
    assert second.endswith(f": {spend}, calls low (median 1, others 5).")
    assert third.endswith(": spend low (median 2, others 5).")


def test_shares_of_texts_tell_clusters_apart_and_near_ones_do_not():
    def text(mean):
        return {"kind": "text", "near": np.nan, "spread": np.nan, "mean": mean} | {
            "category": "yes",
            "auc": 0.5 + (mean - 0.5) / 20,
            "others_mean": 0.5,
        }

    spend = {"spend": number(0.9, 90.0), "age": number(0.5, 40.0)}
    for share, is_told in ((0.1, True), (0.6, False)):
        clusters, columns = clusters_of(
            spend | {"member": text(0.9)}, spend | {"member": text(share)}
        )
        found = list(sentences(clusters, columns, None))
        assert ["member" in sentence for sentence in found] == [is_told] * 2
        assert not any("age" in sentence for sentence in found)


def test_each_column_is_told_once_and_what_is_often_so_comes_first():
    vote = {"column": "vote", "kind": "text", "near": np.nan}
    text = phrases(
        columns_of(
            vote | {"category": "yes", "auc": 0.01, "mean": 0.0, "others_mean": 0.98},
            vote | {"category": "no", "auc": 0.97, "mean": 0.95, "others_mean": 0.01},
            {
                "column": "member",
                "kind": "flag",
                "near": np.nan,
                "auc": 0.2,
                "others_mean": 0.6,
            },
            {"column": "age", "auc": 0.8, "median": 60.0, "others_median": 40.0},
            {"column": "weak", "auc": 0.6, "median": 2.0, "others_median": 1.0},
        )
    )
    assert text == (
        "vote mostly no (95 %, others 1 %), member rarely (0 %, others 60 %), age high (median 60, others 40)"
    )


@pytest.mark.parametrize(
    ("auc", "expected"), [(0.6, "marked by moon, orbit"), (0.99, "moon high (median 3")]
)
def test_words_are_told_unless_columns_say_more(auc, expected):
    columns = columns_of({"column": "moon", "auc": auc, "median": 3.0})
    words = pd.DataFrame({"cluster": 0, "word": ["moon", "orbit"], "score": [2.0, 1.0]})
    clusters = pd.DataFrame({"cluster": [0, 1], "share": 0.5})
    first, _ = sentences(clusters, columns, words)
    assert first.startswith(f"Cluster 0 (50 %): {expected}")
