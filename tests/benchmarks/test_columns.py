"""The study of columns: its made tables, the numbers that others take, and its tables."""

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from benchmarks.halves import TUNING
from benchmarks.libraries import UMAP_DENSITY
from benchmarks.methods import FRONT_DOOR, KMEANS
from benchmarks.studies import _columns_tables as tables
from benchmarks.studies._columns_made import MIXED_NAMES, UNIT_NAMES, made_table
from benchmarks.studies._columns_sets import REAL, numbers_of, sets
from mmcnb.metrics import adjusted_rand_index

pytestmark = pytest.mark.slow
SETS = {one.name: one for one in sets()}


@pytest.mark.parametrize("name", [*MIXED_NAMES[::8], *UNIT_NAMES[::6]])
def test_no_column_of_a_made_table_tells_its_classes_alone(name):
    frame, y = made_table(name)
    for title in frame:
        codes, _ = pd.factorize(frame[title], sort=True)
        # ranges, by the classes
        tree = DecisionTreeClassifier(max_leaf_nodes=y.max() + 1, random_state=0)
        ranges = tree.fit(codes[:, None], y).predict(codes[:, None])
        assert adjusted_rand_index(y, ranges) < 0.6, title
    pd.testing.assert_frame_equal(frame, made_table(name)[0])
    assert not made_table(name, seed=2)[0].equals(frame)


def test_numbers_of_a_frame_are_its_columns_with_one_for_each_value_of_text():
    days = pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-05"])
    frame = pd.DataFrame(
        {"income": [1.0, 3.0, 5.0], "flag": [True, True, False], "joined": days}
    )
    frame["plan"] = ["a", "b", "b"]
    numbers = numbers_of(frame)
    assert numbers.dtype == np.float64
    assert numbers.shape == (3, 5)
    np.testing.assert_array_equal(numbers[:, :2], [[1, 1], [3, 1], [5, 0]])
    assert np.diff(numbers[:, 2]).tolist() == [86_400, 3 * 86_400]
    np.testing.assert_array_equal(numbers[:, 3:], [[1, 0], [0, 1], [0, 1]])


ROWS = [
    ("magic", FRONT_DOOR, "none", 0.4, 0),
    ("magic", FRONT_DOOR, "standard", 0.5, 0),
    ("magic", FRONT_DOOR, "auto", 0.1, 2),
    ("magic", FRONT_DOOR, "auto", 0.2, 0),
    ("heart", FRONT_DOOR, "none", 0.1, 1),
    ("heart", FRONT_DOOR, "standard", 0.7, 1),
    ("heart", FRONT_DOOR, "auto", 0.9, 0),
    ("heart", KMEANS, "none", 0.3, np.nan),
    ("heart", UMAP_DENSITY, np.nan, 0.6, np.nan),
]
FRAME = pd.DataFrame(
    ROWS, columns=["dataset", "method", "scale", "ari", "flagged"]
).assign(status="ok")


def test_means_are_over_seeds_and_then_over_sets_and_changes_against_the_better_scale():
    result = tables.tables_of_sets(FRAME).tables
    means = result["columns"].set_index(["kind", "half"])
    row = means.loc[(REAL, TUNING)]
    assert row[["sets", "auto"]].tolist() == pytest.approx([2, (0.15 + 0.9) / 2])
    assert row[[f"{KMEANS}, none", UMAP_DENSITY]].tolist() == [0.3, 0.6]
    assert means.loc[(REAL, tables.BOTH), "none"] == pytest.approx(0.25)
    changes = result["columns-changes"].set_index("dataset")[tables.CHANGE]
    assert changes.to_dict() == pytest.approx({"heart": 0.9 - 0.7, "magic": 0.15 - 0.5})
    without = tables.tables_of_sets(FRAME[FRAME["scale"] != "auto"]).tables
    assert "columns-changes" not in without


def test_flags_are_counted_among_failed_and_good_partitions():
    counts = tables.tables_of_flags(FRAME[FRAME["method"] == FRONT_DOOR]).tables[
        "columns-flags"
    ]
    counts = counts.set_index(["kind", "scale", "partition"])
    assert counts.loc[("all", "auto", "failed")].tolist() == [2, 1, 0.5]
    assert counts.loc[(REAL, "auto", "good")].tolist() == [1, 0, 0]
    assert counts.loc[(REAL, "standard", "good")].tolist() == [1, 1, 1]
