"""`mmcnb score`: clusters beside known classes, and how well they separate the rows."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import (
    adjusted_mutual_info_score,
    adjusted_rand_score,
    normalized_mutual_info_score,
)

import mmcnb
from mmcnb.metrics import balanced_clustering_error
from mmcnb.stores import create_dense_store, open_class_labels
from tests.cli.conftest import ROWS, customers


@pytest.fixture
def three(folder, printed):
    """Labels in each form, of three clusters with a few errors; and the classes."""
    labels = pd.read_csv("blobs-labels.csv")
    labels.loc[:4, "cluster"] = 0
    labels.to_csv("l.csv", index=False)
    labels.to_parquet("l.parquet")
    return labels["cluster"].to_numpy(), open_class_labels("blobs.zarr")[:]


@pytest.mark.parametrize("name", ["l.csv", "l.parquet"])
def test_scores_are_those_of_the_metrics(name, three, report_of):
    labels, y = three
    report = report_of(f"score blobs.zarr {name} --random-state 4")
    assert 0 < report["balanced_error"] == balanced_clustering_error(y, labels) < 0.1
    assert report["adjusted_rand_index"] == pytest.approx(
        adjusted_rand_score(y, labels)
    )
    assert report["normalized_mutual_information"] == pytest.approx(
        normalized_mutual_info_score(y, labels)
    )
    assert report["adjusted_mutual_information"] == pytest.approx(
        adjusted_mutual_info_score(y, labels)
    )
    assert report["J"] == mmcnb.partition_score("blobs.zarr", labels, random_state=4).J
    assert report["sizes"] == {
        str(k): int(n) for k, n in enumerate(np.bincount(labels))
    }
    clusters = report["confusion"]["clusters"]
    both = np.array(
        [[np.sum((y == c) & (labels == k)) for k in clusters] for c in range(3)]
    )
    assert report["confusion"]["counts"] == both.tolist()
    either = np.array(
        [[np.sum((y == c) | (labels == k)) for k in clusters] for c in range(3)]
    )
    assert report["by_class"]["Jaccard"] == (both / either).max(axis=1).tolist()
    assert report["by_class"]["best"] == [
        clusters[k] for k in (both / either).argmax(axis=1)
    ]


def test_scores_are_worded(three, printed):
    text = printed("score blobs.zarr l.csv")
    for line in (
        r"^150 rows x 3 features of blobs.zarr$",
        r"^cluster sizes  0: \d+ \(\d+\.\d%\), 1: ",
        r"^balanced error +\d\.\d%  \(",
        r"^adjusted rand index +0\.9\d\d  \(",
        r"^J +\d\.\d{2}  \(does not need classes",
        r"^class / cluster +\d +\d +\d +best +Jaccard$",
        r"^2 +\d+ +\d+ +\d+ +\d +0\.\d{2}$",
    ):
        assert re.search(line, text, re.MULTILINE), line


def test_classes_may_come_from_a_table_or_an_array(three, report_of):
    labels, y = three
    table = pd.DataFrame(
        {"cluster": labels, "kind": np.array(["a", "b", "c"])[y], "margin": 0.5}
    )
    table.to_csv("both.csv", index=False)
    pd.DataFrame({"class": y.astype(float)}).to_csv("numbers.csv", index=False)
    # As a spreadsheet program exports it: a table that a fit reads can have the classes.
    exported = table.assign(kind=table["kind"].replace("a", "Händler"))
    text = exported.to_csv(index=False, sep=";", decimal=",")
    Path("exported.csv").write_text(f"Customers 2026\n\n{text}", encoding="cp1252")
    expected = report_of("score blobs.zarr l.csv")
    for words, classes in (
        ("both.csv --label-column kind", ["a", "b", "c"]),
        ("l.parquet --classes both.csv --label-column kind", ["a", "b", "c"]),
        (
            "l.csv --classes exported.csv --label-column kind",
            ["Händler", "b", "c"],
        ),
        ("exported.csv --label-column kind", ["Händler", "b", "c"]),
        ("l.csv --classes blobs.zarr/y", [0, 1, 2]),
        ("l.csv --classes numbers.csv", [0, 1, 2]),
    ):
        report = report_of(f"score blobs.zarr {words}")
        assert report["balanced_error"] == expected["balanced_error"]
        assert report["confusion"] == expected["confusion"] | {"classes": classes}


def test_without_known_classes_there_are_sizes_and_j(three, printed, report_of):
    with create_dense_store("bare.zarr", 3) as writer:
        writer.append(mmcnb.open_samples("blobs.zarr").block(0, ROWS))
    report = report_of("score bare.zarr l.csv")
    assert report["J"] > 2
    assert not {"balanced_error", "confusion"} & set(report)
    text = printed("score bare.zarr l.csv")
    assert "no known classes: the store has none; give them with --classes FILE" in text
    pd.DataFrame({"cluster": np.zeros(ROWS, int)}).to_csv("one.csv", index=False)
    text = printed("score bare.zarr one.csv")
    assert (
        "J: not computed; labels has 1 cluster(s) in the sample; pass labels of two or more clusters."
        in text
    )


@pytest.mark.parametrize("scale", ["auto", None])
def test_with_a_model_j_is_on_the_scale_of_the_fit(scale, folder, report_of):
    report_of(
        f"fit customers.csv --scale {scale} --n-clusters 3 --model m --labels l.csv"
    )
    labels = pd.read_csv("l.csv")["cluster"].to_numpy()
    expected = mmcnb.partition_score(
        "customers.csv", labels, scale=scale, random_state=0
    ).J
    assert report_of("score customers.csv l.csv --model m")["J"] == pytest.approx(
        expected, abs=1e-6
    )
    others = customers(ROWS, seed=2)
    others.assign(spent=100 * others["spent"]).to_csv("others.csv", index=False)
    without = report_of("score others.csv l.csv")["J"]
    assert report_of("score others.csv l.csv --model m")["J"] != pytest.approx(
        without, abs=0.01
    )


def test_labels_are_matched_by_the_names_of_rows(
    folder, printed, report_of, refusal_of
):
    names = [f"r{row}" for row in range(ROWS)]
    customers(ROWS).assign(who=names).to_csv("named.csv", index=False)
    printed("convert named.csv named.zarr --index-column who")
    printed("fit named.zarr --method cpmmc --labels l.csv")
    score = report_of("score named.zarr l.csv")["J"]
    labels = pd.read_csv("l.csv")
    assert labels["who"].tolist() == names
    labels[::-1].to_csv("l.csv", index=False)
    assert report_of("score named.zarr l.csv")["J"] == score
    labels[1:].to_csv("l.csv", index=False)
    refused = refusal_of("score named.zarr l.csv")
    assert "has other rows than" in refused
    assert "it has no row r0 (who); give the labels of these rows" in refused


@pytest.mark.parametrize("ending", ["csv", "parquet", "zarr"])
@pytest.mark.parametrize("verb", ["score {} {}", "explain m {} --labels {}"])
def test_labels_of_more_rows_are_refused_whatever_identifies_them(
    verb, ending, folder, printed, refusal_of
):
    labels = f"l.{ending}"
    printed(f"fit customers.csv --model m --n-clusters 3 --labels {labels}")
    pd.read_csv("customers.csv")[: ROWS - 7].to_csv("part.csv", index=False)
    refused = refusal_of(verb.format("part.csv", labels))
    assert f"{labels} has {ROWS} values and " in refused
    assert f"part.csv has {ROWS - 7} rows; give one label for each row" in refused
    if ending == "csv":
        pd.read_csv(labels)[: ROWS - 7].to_csv(labels, index=False)
        printed(verb.format("part.csv", labels))


@pytest.mark.parametrize("missing", [[3, 8], [ROWS - 1]], ids=["inside", "at the end"])
@pytest.mark.parametrize("source", ["gaps.csv", "gaps.zarr"])
def test_labels_of_rows_that_were_left_out_are_skipped(
    source, missing, folder, printed, report_of, refusal_of
):
    frame = customers(ROWS)
    frame.loc[missing, "spent"] = np.nan
    frame.to_csv("gaps.csv", index=False)
    options = "--missing drop"
    if source == "gaps.zarr":
        printed("convert gaps.csv gaps.zarr --missing drop")
        options = ""
    labels = pd.DataFrame({"row": range(ROWS), "cluster": np.arange(ROWS) % 3})
    labels.to_csv("all.csv", index=False)
    labels.drop(columns="row").to_csv("in_order.csv", index=False)
    kept = labels.drop(index=missing)
    sizes = {str(k): int((kept["cluster"] == k).sum()) for k in range(3)}
    for name in ("all.csv", "in_order.csv"):
        assert report_of(f"score {source} {name} {options}")["sizes"] == sizes
    more = pd.DataFrame({"row": range(ROWS + 4), "cluster": 0})
    more.to_csv("all.csv", index=False)
    more.drop(columns="row").to_csv("in_order.csv", index=False)
    for name in ("all.csv", "in_order.csv"):
        refused = refusal_of(f"score {source} {name} {options}")
        assert f"{name} has {ROWS + 4} values and" in refused
