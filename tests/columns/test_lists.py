"""Lists of numbers beside other columns: one weight, one row of the report, and the elements for all the rest."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.metrics import adjusted_rand_score

import mmcnb
from mmcnb.columns.treatment import treat
from mmcnb.stores import convert

N = 600
KIND = np.arange(N) % 3


def table(scale_of_list=1.0, length=24):
    """Three numbers without clusters, and a list with three; the elements have an offset."""
    rng = np.random.default_rng(5)
    axes = rng.normal(size=(6, length))
    places = 1.8 * rng.normal(size=(3, 6))[KIND] + rng.normal(size=(N, 6))
    vectors = 40 + places @ axes + 0.3 * rng.normal(size=(N, length))
    numbers = {f"number_{k}": rng.normal(50, 9**k, N) for k in range(3)}
    lists = pa.array((scale_of_list * vectors).astype(np.float32).tolist())
    return pa.table(numbers | {"vector": lists})


def fitted(source, scale="auto"):
    return mmcnb.MaximumMarginClustering(3, scale=scale, random_state=0).fit(source)


def agreement(model):
    return adjusted_rand_score(KIND, model.labels_)


def test_the_clusters_of_a_list_are_found_beside_numbers_in_whatever_unit():
    fits = [fitted(table(unit)) for unit in (1.0, 1024.0)]
    assert agreement(fits[0]) > 0.9
    np.testing.assert_array_equal(fits[0].labels_, fits[1].labels_)


def test_the_report_has_one_row_for_a_list():
    report = fitted(table()).report_
    rows = {row["name"]: row for row in report["columns"]}
    assert list(rows) == ["number_0", "number_1", "number_2", "vector"]
    assert rows["vector"]["kind"] == "list"
    assert rows["vector"]["why"] == "24 numbers"
    assert "lists ('vector') as a whole" in report["scaling"]


@pytest.mark.parametrize(("length", "weight"), [(2, 2), (3, 3), (24, 4), (60, 4)])
def test_a_list_weighs_as_its_elements_up_to_four_numbers(length, weight):
    rng = np.random.default_rng(0)
    rows = np.c_[rng.normal(size=N), rng.normal(size=(N, length)) ** 3]
    scaling = treat("auto", rows, None, sources=["age", *["vector"] * length]).scaling
    variances = ((rows - scaling.mean) / scaling.deviation).var(axis=0)
    assert variances[0] == pytest.approx(1)
    assert variances[1:].sum() == pytest.approx(weight, rel=1e-5)
    assert np.unique(scaling.deviation[1:]).size == 1


def test_a_list_alone_is_the_rows():
    source = table()
    alone = fitted(source.select(["vector"]))
    rows = np.stack(source["vector"].to_pylist()).astype(np.float32)
    np.testing.assert_array_equal(alone.labels_, fitted(rows).labels_)
    assert "share one unit" in alone.report_["scaling"]


def test_a_list_keeps_its_weight_in_files_stores_and_models(tmp_path):
    source = table()
    model = fitted(source)
    path = tmp_path / "table.parquet"
    pa.parquet.write_table(source, path)
    convert(path, tmp_path / "store.zarr")
    for other in (path, tmp_path / "store.zarr"):
        np.testing.assert_array_equal(fitted(other).labels_, model.labels_)
    model.save(tmp_path / "model.mmc.zarr")
    restored = mmcnb.load(tmp_path / "model.mmc.zarr")
    np.testing.assert_array_equal(restored.predict(source), model.labels_)


def test_a_list_has_one_name_in_scale():
    source = table()
    as_it_is = fitted(source, {"vector": None})
    rows = {row["name"]: row["treatment"] for row in as_it_is.report_["columns"]}
    assert rows["vector"] == "as it is"
    with pytest.raises(mmcnb.InputError, match="is a list or has values below 0"):
        fitted(source, {"vector": "log"})
    with pytest.raises(mmcnb.InputError, match=r"but the columns are .*'vector'"):
        fitted(source, {"vector_0": 0.5})


def test_an_explanation_names_the_elements():
    source = table()
    assert "vector_" in str(fitted(source).explain(source))
