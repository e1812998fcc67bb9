"""Columns beside an embedding explain its clusters."""

import re

import numpy as np
import pandas as pd
import pytest

import mmcnb


@pytest.fixture(scope="module")
def embedded():
    """Rows of an embedding in two groups, and a table about them."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(300) % 2)
    X = rng.normal(size=(300, 12)).astype(np.float32) + 8 * y[:, None]
    meta = pd.DataFrame(
        {
            "channel": np.where(y == 1, "shop", rng.choice(["web", "phone"], 300)),
            "joined": pd.Timestamp("2020-01-01") + pd.to_timedelta(700 * y, "D"),
            "age": np.where(rng.random(300) < 0.2, np.nan, rng.normal(40, 9, 300)),
            "note": [f"note {k}" for k in range(300)],
        }
    )
    model = mmcnb.MaximumMarginClustering(2, scale=None, random_state=0).fit(X)
    return model, X, meta


def test_clusters_are_explained_by_the_columns_beside_the_rows(embedded, tmp_path):
    model, X, meta = embedded
    explanation = model.explain(X, meta=meta)
    assert set(explanation.columns["column"]) == {"channel", "joined", "age"}
    assert "channel mostly shop" in str(explanation)
    shop = int(model.predict(X[meta["channel"] == "shop"][:1])[0])
    rules = explanation.rules.set_index("cluster")
    assert rules.loc[shop, "rule"] in {"channel = shop", "joined > 2020-01-01"}
    plain = model.explain(X)
    pd.testing.assert_frame_equal(explanation.rows, plain.rows)
    pd.testing.assert_series_equal(
        explanation.clusters["margin"], plain.clusters["margin"]
    )
    meta.to_csv(tmp_path / "meta.csv", index=False)
    assert str(model.explain(X, meta=tmp_path / "meta.csv")) == str(explanation)


def test_the_command_line_takes_a_table_beside_the_rows(embedded, tmp_path, capsys):
    from mmcnb.cli import main

    model, X, meta = embedded
    model.save(tmp_path / "rows.model")
    np.save(tmp_path / "rows.npy", X)
    meta.to_csv(tmp_path / "meta.csv", index=False)
    rows = [str(tmp_path / "rows.model"), str(tmp_path / "rows.npy")]
    beside = ["--meta", str(tmp_path / "meta.csv")]
    assert not main(["explain", *rows, *beside])
    assert str(model.explain(X, meta=meta)) in capsys.readouterr().out
    page = tmp_path / "page.html"
    assert not main(["report", *rows, *beside, "--out", str(page)])
    assert "channel mostly shop" in page.read_text(encoding="utf-8")


@pytest.mark.filterwarnings("always::mmcnb.ClusterWarning")
def test_columns_beside_the_rows_that_explain_nothing_are_named(
    embedded, tmp_path, capsys
):
    from mmcnb.cli import main

    model, X, meta = embedded
    left_out = "1 column of meta is left out of the explanation: 'note' (300 texts"
    with pytest.warns(mmcnb.ClusterWarning, match=re.escape(left_out)):
        model.explain(X, meta=meta)
    model.save(tmp_path / "rows.model")
    np.save(tmp_path / "rows.npy", X)
    meta.to_csv(tmp_path / "meta.csv", index=False)
    rows = [str(tmp_path / "rows.model"), str(tmp_path / "rows.npy")]
    rows += ["--meta", str(tmp_path / "meta.csv")]
    page = tmp_path / "page.html"
    assert not main(["explain", *rows])
    assert left_out in capsys.readouterr().err
    assert not main(["report", *rows, "--out", str(page)])
    assert capsys.readouterr().err.count(left_out) == 1
    shown = "<dt>Columns of meta left out</dt><dd>note (300 texts in 300 rows)</dd>"
    assert shown in page.read_text(encoding="utf-8")


def test_the_page_names_no_column_that_is_alike_in_all_clusters(embedded, tmp_path):
    model, X, meta = embedded
    coins = np.random.default_rng(1).choice(["en", "de", "fr"], len(X))
    meta = meta[["channel", "age"]].assign(lang=coins)
    model.write_report(X, tmp_path / "page.html", meta=meta)
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<dt>Clusters differ most in</dt><dd>channel</dd>" in text
    model.write_report(X, tmp_path / "page.html", meta=meta[["lang"]])
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "differ most in" not in text


def test_a_table_with_other_rows_is_refused(embedded):
    model, X, meta = embedded
    with pytest.raises(mmcnb.InputError, match="meta has 299 rows, but X has 300"):
        model.explain(X, meta=meta[:-1])
