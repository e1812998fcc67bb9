"""Filled gaps count in no figure of an explanation: it has those of pandas, which leaves NaN out."""

import numpy as np
import pandas as pd
import pytest

import mmcnb

SHARES = {"bill": (0.1, 0.6), "visits": (0.2, 0.2), "kind": (0.0, 0.3)}


def orders(n=400, seed=0):
    """Two groups of rows, one of which has more gaps than the other; and the groups.

    All numbers are fourths, which float32 has exactly.
    """
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % 2)
    table = pd.DataFrame(
        {
            "bill": np.round(4 * rng.normal(20 + 9 * y, 2)) / 4,
            "visits": np.round(4 * rng.normal(50 - 30 * y, 3)) / 4,
            "length": np.round(4 * rng.normal(5 + 8 * y, 1)) / 4,
            "kind": np.array(["lunch", "dinner", "brunch"])[rng.integers(0, 3, n)],
        }
    )
    for name, shares in SHARES.items():
        table.loc[rng.random(n) < np.array(shares)[y], name] = None
    return table, y


def written(table, form, folder):
    """A table in another form."""
    if form == "frame":
        return table
    if form == "array":
        return table.to_numpy()
    path = folder / f"table.{form}"
    if form == "csv":
        table.to_csv(path, index=False)
    elif form == "parquet":
        table.to_parquet(path, index=False, row_group_size=64)
    elif form == "npy":
        np.save(path, table.to_numpy())
    else:
        mmcnb.stores.convert(written(table, "csv", folder), path)
    return path


def assert_figures_of_pandas(columns, table, y):
    numbers = table.select_dtypes("number")
    for cluster, of_cluster in columns[columns["category"] == ""].groupby("cluster"):
        figures = of_cluster.set_index("column").loc[list(numbers)]
        for inside, prefix in ((y == cluster, ""), (y != cluster, "others_")):
            expected = {
                "mean": numbers[inside].mean(),
                "median": numbers[inside].median(),
                "gaps": numbers[inside].isna().mean(),
            }
            for name, values in expected.items():
                np.testing.assert_allclose(figures[prefix + name], values, rtol=1e-9)
        difference = numbers[y == cluster].mean() - numbers[y != cluster].mean()
        effect = difference / numbers.std(ddof=0)
        np.testing.assert_allclose(figures["effect"], effect, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::mmcnb.errors.ClusterWarning")
@pytest.mark.parametrize("form", ["frame", "csv", "parquet", "zarr"])
def test_figures_of_a_table_with_gaps_are_those_of_its_values(form, tmp_path):
    table, y = orders()
    model = mmcnb.MaximumMarginClustering(2, random_state=0).fit(table)
    explanation = model.explain(written(table, form, tmp_path), y)
    columns = explanation.columns
    assert_figures_of_pandas(columns, table, y)
    texts = columns[columns["column"] == "kind"].set_index(["cluster", "category"])
    for cluster in (0, 1):
        values = table["kind"][y == cluster]
        shares = values.value_counts(normalize=True)
        gaps = values.isna().mean()
        for category, share in shares.items():
            assert texts.loc[(cluster, category), "mean"] == pytest.approx(share)
            assert texts.loc[(cluster, category), "gaps"] == pytest.approx(gaps)
    expected = model.explain(table, y)
    pd.testing.assert_frame_equal(columns, expected.columns, rtol=1e-12)
    assert str(explanation) == str(expected)


@pytest.mark.parametrize("form", ["array", "npy"])
def test_figures_of_an_array_with_gaps_are_those_of_its_values(form, tmp_path):
    table, y = orders()
    table = table.select_dtypes("number")
    X = written(table, form, tmp_path)
    with pytest.warns(mmcnb.errors.ClusterWarning, match="gaps were filled"):
        model = mmcnb.MaximumMarginClustering(2, random_state=0).fit(X)
    explanation = model.explain(X, y)
    table.columns = range(3)
    assert_figures_of_pandas(explanation.columns, table, y)
    assert "column 0 missing in " in str(explanation)


@pytest.mark.filterwarnings("ignore::mmcnb.errors.ClusterWarning")
@pytest.mark.parametrize("missing", ["auto", "median", "mean", "neighbors"])
def test_values_that_any_option_fills_do_not_count(missing):
    table, y = orders()
    table = table.drop(columns="kind")
    rows = mmcnb.read_table(table, missing=missing)
    model = mmcnb.MaximumMarginClustering(2, random_state=0).fit(rows)
    assert_figures_of_pandas(model.explain(rows, y).columns, table, y)


@pytest.mark.filterwarnings("ignore::mmcnb.errors.ClusterWarning")
def test_sentences_name_columns_of_other_shares_of_gaps():
    table, y = orders()
    model = mmcnb.MaximumMarginClustering(2, random_state=0).fit(table)
    for cluster, sentence in enumerate(model.explain(table, y).clusters["sentence"]):
        own, others = (
            f"{table['bill'][inside].isna().mean():.0%}".replace("%", " %")
            for inside in (y == cluster, y != cluster)
        )
        assert f"bill missing in {own} (others {others})" in sentence
        assert "visits missing" not in sentence
        assert sentence.count("kind missing") == 1


@pytest.mark.filterwarnings("ignore::mmcnb.errors.ClusterWarning")
@pytest.mark.parametrize("kind", ["number", "date", "flag", "rating", "text"])
def test_a_column_without_values_in_a_cluster_has_no_figures_there(kind, tmp_path):
    table, y = orders()
    rng = np.random.default_rng(1)
    days = pd.to_timedelta(rng.integers(0, 900, len(table)), "D")
    values = {
        "number": rng.normal(size=len(table)),
        "date": pd.Timestamp("2020-01-01") + days,
        "flag": rng.integers(0, 2, len(table)).astype(float),
        "rating": rng.integers(1, 6, len(table)).astype(float),
        "text": rng.choice(["x", "y"], len(table)).astype(object),
    }
    table["extra"] = pd.Series(values[kind]).where(y == 0)
    model = mmcnb.MaximumMarginClustering(2, random_state=0).fit(table, keep="extra")
    explanation = model.explain(table, y)
    columns = explanation.columns
    extra = columns[columns["column"] == "extra"].groupby("cluster").first()
    assert extra.loc[1, "gaps"] == 1
    assert extra.loc[0, "gaps"] == 0
    assert extra.loc[1, ["mean", "median", "auc", "effect"]].isna().all()
    assert extra.loc[0, ["mean", "median"]].notna().all()
    assert "extra missing in 100 % (others 0 %)" in str(explanation)
    assert "nan" not in str(explanation)
    model.write_report(table, tmp_path / "page.html", y)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "extra" in page
    assert ">nan" not in page
    assert "missing here" in page
    assert "<td>100.0%</td><td>0.0%</td></tr>" in page


def test_rows_without_gaps_have_none(tmp_path):
    table, y = orders()
    table = table.ffill().bfill()
    model = mmcnb.MaximumMarginClustering(2, random_state=0).fit(table)
    columns = model.explain(table, y).columns
    assert (columns[["gaps", "others_gaps"]] == 0).all(axis=None)
    model.write_report(table, tmp_path / "page.html", y)
    assert "missing here" not in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::mmcnb.errors.ClusterWarning")
def test_a_dask_cluster_has_the_figures_of_a_table_with_gaps(dask_client, tmp_path):
    table, y = orders(70_000)
    model = mmcnb.UnsupervisedRLS(2, kernel="linear", random_state=0).fit(table)
    expected = model.explain(table, y).columns
    with mmcnb.config(engine=dask_client(2)):
        for form in ("parquet", "zarr", "frame"):
            columns = model.explain(written(table, form, tmp_path), y).columns
            pd.testing.assert_frame_equal(columns, expected, rtol=1e-12)
