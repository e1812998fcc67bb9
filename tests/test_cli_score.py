"""Labels as tables on the command line, and ``mmcnb score``."""

import json
import re
import warnings

import numpy as np
import pandas as pd
import pytest
import zarr
from sklearn.metrics import (
    adjusted_mutual_info_score,
    adjusted_rand_score,
    normalized_mutual_info_score,
    v_measure_score,
)

import mmcnb
from mmcnb.cli import main
from mmcnb.datasets import write_synthetic
from mmcnb.metrics import balanced_clustering_error
from mmcnb.stores import create_dense_store, open_class_labels

ROWS, CLUSTERS = 600, 3
METHOD = [
    "--method",
    "unsupervised-rls",
    "--n-clusters",
    CLUSTERS,
    "--set",
    "n_init=2",
    "--set",
    "sample_size=300",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A store, and the model and labels of a fit in each form."""
    folder = tmp_path_factory.mktemp("scored")
    store = folder / "blobs.zarr"
    write_synthetic("blobs", store, ROWS, 3, 35, n_clusters=CLUSTERS)
    outputs = ["--model", folder / "model", "--labels", folder / "l.csv"]
    assert main([*map(str, ["fit", store, *METHOD, *outputs, "--random-state", 0])]) == 0
    for name in ("l.parquet", "l.zarr", "bare"):
        words = ["predict", folder / "model", store, "--labels", folder / name]
        assert main([*map(str, words)]) == 0
    return folder


def run(capsys, *words):
    assert main([*map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refuse(capsys, *words):
    """Run a command that must be refused; give its sentence."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert main([*map(str, words)]) == 2
    streams = capsys.readouterr()
    assert streams.out == ""
    assert streams.err.count("\n") == 1, streams.err
    return streams.err


def test_labels_are_the_same_in_every_form(folder):
    expected = mmcnb.load(folder / "model").to_frame(folder / "blobs.zarr")
    for table in (
        pd.read_csv(folder / "l.csv", engine="pyarrow"),
        pd.read_parquet(folder / "l.parquet"),
    ):
        assert table.columns.tolist() == ["row", "cluster", "margin"]
        assert table["row"].tolist() == list(range(ROWS))
        np.testing.assert_array_equal(table["cluster"], expected["cluster"])
        np.testing.assert_array_equal(table["margin"], expected["margin"])
    for name in ("l.zarr", "bare"):
        np.testing.assert_array_equal(zarr.open_array(folder / name, mode="r")[:], expected["cluster"])
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("verb", ["fit", "predict"])
def test_an_ending_that_says_no_form_is_refused_before_any_work(verb, folder, tmp_path, capsys):
    first = ["fit", "no.zarr", "--model", tmp_path / "m"] if verb == "fit" else ["predict", "m", "no.zarr"]
    said = refuse(capsys, *first, "--labels", tmp_path / "l.txt")
    assert (
        "l.txt: labels are not written as '.txt'; give a path that ends with .csv, .parquet or .zarr" in said
    )
    assert list(tmp_path.iterdir()) == []


def test_a_table_that_exists_is_replaced_with_overwrite_alone(folder, tmp_path, capsys):
    words = ["predict", folder / "model", folder / "blobs.zarr", "--labels", tmp_path / "l.csv"]
    (tmp_path / "l.csv").write_text("mine")
    assert "--overwrite" in refuse(capsys, *words)
    assert (tmp_path / "l.csv").read_text() == "mine"
    run(capsys, *words, "--overwrite")
    assert (tmp_path / "l.csv").read_text() == (folder / "l.csv").read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["l.csv"]


@pytest.mark.parametrize("name", ["l.csv", "l.parquet", "l.zarr", "bare"])
def test_scores_are_those_of_the_metrics(name, folder, capsys):
    store = folder / "blobs.zarr"
    words = ["score", store, folder / name, "--random-state", 4]
    report = run(capsys, *words)
    y, labels = open_class_labels(store), zarr.open_array(folder / "l.zarr", mode="r")[:]
    assert report["balanced_error"] == balanced_clustering_error(y, labels) < 0.1
    assert report["adjusted_rand_index"] == pytest.approx(adjusted_rand_score(y, labels))
    assert report["normalized_mutual_information"] == pytest.approx(normalized_mutual_info_score(y, labels))
    assert report["adjusted_mutual_information"] == pytest.approx(adjusted_mutual_info_score(y, labels))
    assert report["normalized_mutual_information"] == pytest.approx(v_measure_score(y, labels))
    assert report["J"] == mmcnb.partition_score(store, labels, random_state=4).J
    assert report["sizes"] == {str(k): int(n) for k, n in enumerate(np.bincount(labels))}
    counts = np.array(report["confusion"]["counts"])
    assert counts.sum() == ROWS
    assert (counts.argmax(axis=1) == np.arange(CLUSTERS)).all()
    for c, (cluster, jaccard) in enumerate(zip(*report["by_class"].values(), strict=True)):
        both = [((y == c) & (labels == k)).sum() / ((y == c) | (labels == k)).sum() for k in range(CLUSTERS)]
        assert (cluster, jaccard) == (np.argmax(both), max(both))


def test_scores_are_worded(folder, capsys):
    assert main([*map(str, ["score", folder / "blobs.zarr", folder / "l.csv"])]) == 0
    out = capsys.readouterr().out
    for line in (
        *(r"^600 rows x 3 features of ", r"^cluster sizes  0: \d+ \("),
        *(r"^balanced error +\d+\.\d%  \(", r"^adjusted rand index +0\.\d{3}  \("),
        *(r"^J +\d\.\d{2}  \(without classes", r"^class / cluster +\d +\d +\d +best +Jaccard$"),
        r"^2 +\d+ +\d+ +\d+ +\d +0\.\d{2}$",
    ):
        assert re.search(line, out, re.MULTILINE), line


def test_with_a_model_j_is_on_the_scale_of_the_fit(tmp_path, capsys):
    """Other rows of another spread, with a text, as the fit has scaled them."""
    rng, y = np.random.default_rng(0), np.arange(300) % 3
    table = pd.DataFrame({"a": 9.0 * y + rng.normal(size=300), "b": rng.normal(size=300)})
    table["kind"] = np.array(["x", "y", "z"])[rng.integers(0, 3, 300)]
    for name, rows in {"rows": table, "others": table[::-1].assign(b=100 * table["b"])}.items():
        rows.to_csv(tmp_path / f"{name}.csv", index=False)
    for scale in ("auto", "None"):
        outputs = ["--model", tmp_path / "m", "--labels", tmp_path / "l.csv", "--overwrite"]
        run(capsys, "fit", tmp_path / "rows.csv", "--scale", scale, "--n-clusters", 3, *outputs)
        words = "score", tmp_path / "rows.csv", tmp_path / "l.csv"
        labels = pd.read_csv(tmp_path / "l.csv")["cluster"].to_numpy()
        own = mmcnb.partition_score(
            tmp_path / "rows.csv", labels, scale=None if scale == "None" else scale, random_state=0
        )
        assert run(capsys, *words, "--model", tmp_path / "m")["J"] == pytest.approx(own.J, abs=1e-6)
    run(capsys, "predict", tmp_path / "m", tmp_path / "others.csv", "--labels", tmp_path / "o.csv")
    words = "score", tmp_path / "others.csv", tmp_path / "o.csv"
    assert run(capsys, *words)["J"] != run(capsys, *words, "--model", tmp_path / "m")["J"]
    table[["a", "b"]].to_csv(tmp_path / "short.csv", index=False)
    said = refuse(capsys, "score", tmp_path / "short.csv", tmp_path / "l.csv", "--model", tmp_path / "m")
    assert "kind" in said


def test_classes_may_come_from_a_table(folder, tmp_path, capsys):
    store = folder / "blobs.zarr"
    y = np.array(["a", "b", "c"])[open_class_labels(store)]
    frame = pd.read_csv(folder / "l.csv").assign(kind=y)
    frame.to_csv(tmp_path / "both.csv", index=False)
    frame[["kind", "margin"]].to_parquet(tmp_path / "known.parquet")
    expected = run(capsys, "score", store, folder / "l.csv")
    for words in (
        [tmp_path / "both.csv", "--label-column", "kind"],
        [folder / "l.zarr", "--classes", tmp_path / "known.parquet", "--label-column", "kind"],
        [folder / "l.parquet", "--classes", store / "y"],
    ):
        report = run(capsys, "score", store, *words)
        assert report["balanced_error"] == expected["balanced_error"]
        assert report["confusion"]["counts"] == expected["confusion"]["counts"]
    assert run(capsys, "score", store, tmp_path / "both.csv", "--label-column", "kind")["confusion"][
        "classes"
    ] == ["a", "b", "c"]


def test_without_known_classes_there_are_sizes_and_j(folder, tmp_path, capsys):
    X = mmcnb.open_samples(folder / "blobs.zarr").block(0, ROWS)
    with create_dense_store(tmp_path / "bare.zarr", 3) as writer:
        writer.append(X)
    report = run(capsys, "score", tmp_path / "bare.zarr", folder / "l.csv")
    assert report["J"] > 2
    assert not {"balanced_error", "confusion"} & set(report)
    assert main(["score", str(tmp_path / "bare.zarr"), str(folder / "l.csv")]) == 0
    assert "no known classes: the store keeps none; give them with --classes FILE" in capsys.readouterr().out


def test_one_cluster_has_no_j(folder, tmp_path, capsys):
    pd.DataFrame({"cluster": np.zeros(ROWS, int)}).to_csv(tmp_path / "one.csv", index=False)
    assert main(["score", str(folder / "blobs.zarr"), str(tmp_path / "one.csv")]) == 0
    assert (
        "J: none; labels has 1 cluster(s) in the sample; give labels of two or more."
        in capsys.readouterr().out
    )


def test_labels_of_other_rows_are_refused_by_their_names(tmp_path, capsys):
    X = np.random.default_rng(0).normal(size=(60, 2)) + np.repeat([[0.0], [9.0]], 30, axis=0)
    table = pd.DataFrame(X, columns=["a", "b"], index=pd.Index([f"r{i}" for i in range(60)], name="who"))
    table.to_csv(tmp_path / "rows.csv")
    store, labels = tmp_path / "rows.zarr", tmp_path / "l.csv"
    run(capsys, "convert", tmp_path / "rows.csv", store, "--index-column", "who")
    run(capsys, "fit", store, "--method", "cpmmc", "--model", tmp_path / "m", "--labels", labels)
    assert run(capsys, "score", store, labels)["J"] > 2
    written = pd.read_csv(labels)
    assert written["index"].tolist() == table.index.tolist()
    written.iloc[::-1].to_csv(labels, index=False)
    said = refuse(capsys, "score", store, labels)
    assert "has other rows than" in said
    assert "row 0 is r59, not r0; give the labels of these rows, in their order" in said


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["short.csv"],
            r"short\.csv has 5 values and .* has 600 rows; give one label a row, in the order of the rows",
        ),
        (["l.csv", "--classes", "short.csv"], r"short\.csv has 5 values and .* has 600 rows"),
        (
            ["l.csv", "--label-column", "margin"],
            r"l\.csv has numbers such as [\d.]+; give whole numbers or names",
        ),
        (
            ["l.csv", "--label-column", "kind"],
            "has no column 'kind' to take; name one of row, cluster, margin",
        ),
        (["none.csv"], r"none\.csv does not exist"),
        (["model"], "model is a file and no Zarr store"),
    ],
)
def test_what_cannot_be_scored_is_refused(words, sentence, folder, tmp_path, capsys):
    pd.DataFrame({"cluster": range(5)}).to_csv(tmp_path / "short.csv", index=False)
    here = {"short.csv": tmp_path, "none.csv": tmp_path}
    words = [
        word if word.startswith("--") or word in ("margin", "kind") else here.get(word, folder) / word
        for word in words
    ]
    assert re.search(sentence, refuse(capsys, "score", folder / "blobs.zarr", *words))
