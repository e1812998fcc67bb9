"""The page of a fit has the commands and the call that find its labels again."""

import html
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mmcnb
from mmcnb.cli import main
from mmcnb.datasets import write_synthetic

ROWS = 120


def block_of(page, language):
    """The text of a block of the page, as a reader copies it; None if it is not there."""
    text = Path(page).read_text(encoding="utf-8")
    found = re.search(rf'<pre id="{language}">(.*?)</pre>', text, re.DOTALL)
    return None if found is None else html.unescape(found[1])


def labels_in_python(page, **variables):
    """The labels of the call on a page, run as it stands."""
    names = dict(variables)
    exec(block_of(page, "python"), names)
    assert Path("report.html").exists()
    return np.asarray(names["labels"]).tolist()


def labels_in_shell(page):
    """The labels of the commands on a page, run by a shell in a folder of their own files."""
    python = f'mmcnb() {{ "{sys.executable}" -m mmcnb "$@"; }}\n'
    done = subprocess.run(
        ["bash", "-ec", python + block_of(page, "shell")],
        check=True,
        capture_output=True,
        timeout=300,
        env=os.environ,
    )
    assert b"report.html" in done.stdout
    return pd.read_csv("labels.csv")["cluster"].tolist()


def customers():
    """Groups by age, spending and plan, with marks of missing values that a reader must know."""
    rng = np.random.default_rng(0)
    group = np.arange(ROWS) % 3
    table = pd.DataFrame(
        {
            "customer_id": np.arange(ROWS) + 7000,
            "age": (20 + 25 * group + rng.normal(size=ROWS)).round(2).astype(str),
            "spent, in EUR": (9 * (group == 1) + rng.normal(size=ROWS)).round(2),
            "plan": np.array(["small", "medium", "large"])[group],
            "code": rng.integers(0, 3, ROWS),
        }
    )
    table.loc[::10, "age"] = "n=a,b"
    return table


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


OPTIONS = [
    *("--na-values", '"n=a,b"', "--na-values", "code=0"),
    *("--order", "plan=small,medium,large", "--text", "code", "--delimiter", ";"),
    *("--keep", "customer_id", "--missing", "median", "--drop", "spent, in EUR"),
]


@pytest.mark.slow
def test_a_table_with_options_is_fitted_again(folder):
    customers().to_csv("our customers.csv", index=False, sep=";")
    rows = "our customers.csv"
    fit = ["fit", rows, "--n-clusters", "3", "--scale", "{'age': 'standard'}"]
    outputs = ["--random-state", "5", "--model", "first", "--labels", "first.csv"]
    assert main([*fit, *OPTIONS, *outputs]) == 0
    expected = pd.read_csv("first.csv")["cluster"].tolist()
    assert main(["report", "first", rows, "--out", "page.html"]) == 0
    assert labels_in_python("page.html") == expected
    Path("report.html").unlink()
    assert labels_in_shell("page.html") == expected
    assert "--missing median" in block_of("page.html", "shell")
    assert block_of("report.html", "shell") == block_of("page.html", "shell")


@pytest.mark.slow
def test_a_store_is_fitted_again(folder):
    write_synthetic("blobs", "rows.zarr", ROWS, 3, 35, n_clusters=3)
    model = mmcnb.UnsupervisedRLS(3, gamma="median", n_init=2, random_state=1)
    model.fit("rows.zarr").write_report("rows.zarr", "page.html")
    assert labels_in_python("page.html") == model.labels_.tolist()
    Path("report.html").unlink()
    assert labels_in_shell("page.html") == model.labels_.tolist()
    assert "--set n_init=2" in block_of("page.html", "shell")


def test_rows_in_memory_are_fitted_again(folder):
    X = customers().replace("n=a,b", None)
    for options in ({"keep": ["customer_id"]}, {"columns": ["plan", "age"]}):
        model = mmcnb.MaximumMarginClustering((2, 5), random_state=0)
        model.fit(X, **options).write_report(X, "page.html")
        assert labels_in_python("page.html", X=X) == model.labels_.tolist()
        assert block_of("page.html", "shell") is None


def test_options_of_read_table_stand_in_the_call(folder):
    X = customers()
    options = {"text": "code", "na_values": {"age": ["n=a,b"]}, "drop": "customer_id"}
    model = mmcnb.MaximumMarginClustering(3, random_state=0)
    model.fit(mmcnb.read_table(X, **options)).write_report(X, "page.html")
    assert labels_in_python("page.html", X=X) == model.labels_.tolist()
    call = block_of("page.html", "python")
    assert "text=['code']" in call
    assert "na_values={'age': ['n=a,b']}" in call


@pytest.mark.filterwarnings("ignore::mmcnb.ClusterWarning")
@pytest.mark.parametrize(
    "model", [mmcnb.CPMMC(), mmcnb.MaximumMarginClustering(2)], ids=str
)
def test_a_fit_without_a_seed_is_fitted_again(folder, model):
    X = np.random.default_rng(0).normal(size=(ROWS, 2))  # labels depend on the seed
    model.fit(X)
    model.save("kept.model")
    mmcnb.load("kept.model").write_report(X, "page.html")
    assert "the seed shown here was drawn at random" in Path("page.html").read_text(
        "utf-8"
    )
    assert labels_in_python("page.html", X=X) == model.labels_.tolist()


def test_what_cannot_be_repeated_is_said(folder):
    X = (
        np.random.default_rng(0).normal(size=(ROWS, 2))
        + 9 * (np.arange(ROWS) % 2)[:, None]
    )
    weights = np.ones(ROWS)
    weights[:9] = 2
    np.save("rows.npy", X)
    model = mmcnb.UnsupervisedRLS(2)
    model.fit("rows.npy", sample_weight=weights).write_report("rows.npy", "page.html")
    text = Path("page.html").read_text(encoding="utf-8")
    assert (
        "The fit had no random_state; the seed shown here was drawn at random." in text
    )
    assert "The command line has no option for sample_weight." in text
    assert block_of("page.html", "shell") is None
    assert "fit(&#x27;rows.npy&#x27;, sample_weight=sample_weight)" in text
    model.set_params(random_state=np.random.RandomState(0)).fit(X[::2])
    model.write_report(X, "page.html")
    text = Path("page.html").read_text(encoding="utf-8")
    assert "random_state was a generator" in text
    assert f"The fit had {ROWS // 2} rows, but this page describes {ROWS} rows" in text


def page_of_rows(page):
    """The clusters, columns and map of a page."""
    text = Path(page).read_text(encoding="utf-8").partition("<h2>Clusters</h2>")[2]
    return text.partition("<h2>How to repeat this</h2>")[0]


@pytest.fixture
def embedding(folder):
    """Rows in two groups, a table about them, and labels, all of them in files."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 3)) + 9 * (np.arange(ROWS) % 2)[:, None]
    np.save("rows.npy", X)
    meta = pd.DataFrame({"age": 9 * (X[:, 0] > 4) + rng.normal(size=ROWS)})
    meta.to_csv("about them.csv", index=False)
    pd.DataFrame({"cluster": np.arange(ROWS) % 3}).to_csv("thirds.csv", index=False)
    model = mmcnb.MaximumMarginClustering(2, random_state=0).fit("rows.npy")
    model.save("rows.model")
    return model, X, meta


def test_a_page_of_other_columns_and_labels_is_written_again(embedding):
    page = ["report", "rows.model", "rows.npy", "--labels", "thirds.csv"]
    assert main([*page, "--meta", "about them.csv", "--out", "page.html"]) == 0
    for labels_again in (labels_in_python, labels_in_shell):
        labels_again("page.html")
        assert page_of_rows("report.html") == page_of_rows("page.html")
        Path("report.html").unlink()


def test_a_page_of_values_in_memory_is_written_again_in_python(embedding):
    model, _, meta = embedding
    thirds = np.arange(ROWS) % 3
    model.write_report("rows.npy", "page.html", thirds, meta=meta)
    assert block_of("page.html", "shell") is None
    text = Path("page.html").read_text(encoding="utf-8")
    assert "The command line reads labels and meta from files only." in text
    labels_in_python("page.html", labels_of_page=thirds, meta=meta)
    assert page_of_rows("report.html") == page_of_rows("page.html")


def test_a_page_without_cells_is_written_again_without_cells(embedding):
    model, X, _ = embedding
    model.write_report(X, "page.html", meta="about them.csv", hide_rows=True)
    assert "about them" not in Path("page.html").read_text(encoding="utf-8")
    labels_in_python("page.html", X=X, meta="about them.csv")
    assert page_of_rows("report.html") == page_of_rows("page.html")
    assert "write_report(X, &quot;report.html&quot;, meta=meta, hide_rows=True)" in (
        Path("page.html").read_text(encoding="utf-8")
    )


def test_the_commands_read_the_rows_as_the_page_did(folder):
    customers().to_csv("a.csv", index=False, sep=";")
    customers().to_csv("b.csv", index=False, sep="|")
    fit = ["fit", "a.csv", "--n-clusters", "3", "--random-state", "0"]
    fit += ["--delimiter", ";", "--na-values", '"n=a,b"', "--model", "a.model"]
    assert main(fit) == 0
    report = ["report", "a.model", "b.csv", "--delimiter", "|", "--out", "page.html"]
    assert main(report) == 0
    assert "--delimiter '|'" in block_of("page.html", "shell")
    assert "delimiter='|'" in block_of("page.html", "python")
    assert "';'" not in block_of("page.html", "shell")


def test_a_model_file_cannot_put_code_into_the_call(folder):
    X = np.r_[np.zeros((20, 2)), np.ones((20, 2))] + np.arange(40.0)[:, None] / 99
    model = mmcnb.CPMMC(random_state=0).fit(X)
    model.report_["input"] = {
        "options": {"na_values": ["'); evil('"], "keep": ["$(evil)"]},
        "arguments": ["sample_weight", "y); evil("],
    }
    model.save("odd")
    mmcnb.load("odd").write_report(X, "page.html")
    call = block_of("page.html", "python")
    assert "y); evil(" not in call
    assert repr("'); evil('") in call
    model.report_["input"]["options"] = {"no option": 1}
    model.save("odd")
    mmcnb.load("odd").write_report(X, "page.html")
    assert "read_table" not in block_of("page.html", "python")
