"""The plan of the columns of a table is what a fit does with them."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest

import mmcnb
from mmcnb import cli
from mmcnb.errors import InputError

N = 300


def orders():
    """Return a frame with numbers as texts, ids, dates, gaps and categories."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, N)
    frame = pd.DataFrame(
        {
            "order_id": np.arange(N) + 10_000,
            "entered": pd.date_range("2024-01-01", periods=N, freq="h").astype(str),
            "price": [f"$ {value:.2f}" for value in 30.0 * y + rng.normal(9, 1, N)],
            "weight": np.where(
                rng.random(N) < 0.1, np.nan, 5.0 * y + rng.normal(size=N)
            ),
            "kind": np.array(["oak", "elm", "fir"])[y],
            "code": np.char.add("0", rng.integers(1, 4, N).astype(str)),
        }
    )
    return frame


def fitted(rows, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mmcnb.ClusterWarning)
        return mmcnb.MaximumMarginClustering(3, random_state=0).fit(rows, **options)


def table(form, folder):
    frame = orders()
    if form == "frame":
        return frame
    path = folder / f"orders.{form}"
    if form == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path)
    return str(path)


@pytest.mark.parametrize("form", ["frame", "csv", "parquet"])
def test_a_fit_does_what_the_plan_says(form, tmp_path):
    rows = table(form, tmp_path)
    plan = mmcnb.table_plan(rows)
    model = fitted(rows)
    encoding = model.model_.encoding
    assert plan.feature_names == encoding.feature_names
    assert {c.name: (c.kind, c.why, c.form) for c in plan.encoding.columns} == {
        c.name: (c.kind, c.why, c.form) for c in encoding.columns
    }
    assert set(plan.notes) <= set(model.report_["warnings"])
    assert plan.n_samples == N
    again = fitted(rows, columns=plan)
    assert again.labels_.tobytes() == model.labels_.tobytes()


@pytest.mark.parametrize("form", ["frame", "csv"])
def test_a_plan_that_is_edited_is_followed(form, tmp_path):
    rows = table(form, tmp_path)
    plan = mmcnb.table_plan(rows).keep("order_id").drop("code")
    assert "order_id" in plan.feature_names
    assert not any(name.startswith("code") for name in plan.feature_names)
    assert (
        fitted(rows, columns=plan).model_.encoding.feature_names == plan.feature_names
    )
    back = plan.drop("order_id").keep("code")
    assert back.feature_names == mmcnb.table_plan(rows).feature_names
    texts = plan.with_options(text=["price"], categories="one-hot")
    assert sum(name.startswith("price_") for name in texts.feature_names) > 100


@pytest.mark.parametrize(
    "option", [{"colour": 1}, {"keeps_gaps": True}, {"names": ["a"]}]
)
def test_an_option_that_there_is_not_is_refused(option):
    (name,) = option
    with pytest.raises(mmcnb.InputError, match=f"{name} is not an option of tables"):
        mmcnb.table_plan(orders(), **option)
    with pytest.raises(mmcnb.InputError, match=f"{name} is not an option of tables"):
        mmcnb.table_plan(orders()).with_options(**option)


def test_frames_have_the_options_of_files():
    frame = orders().assign(weight=np.where(np.arange(N) < 9, -7.5, 3.0))
    plan = mmcnb.table_plan(frame, na_values={"weight": [-7.5]}, missing="drop")
    model = fitted(frame, columns=plan)
    assert model.labels_.size == N - 9


def test_the_command_shows_the_same_plan(tmp_path, capsys):
    path = table("csv", tmp_path)
    assert cli.main(["info", path, "--json"]) == 0
    described = json.loads(capsys.readouterr().out)
    plan = mmcnb.table_plan(path)
    assert described["notes"] == list(plan.notes)
    named = [column["name"] for column in described["columns"]]
    becomes = [column["becomes"] for column in described["columns"]]
    assert named == plan.columns["column"].tolist()
    assert becomes == plan.columns["becomes"].tolist()


def test_a_plan_prints_a_line_for_each_column():
    lines = str(mmcnb.table_plan(orders())).splitlines()
    assert lines[0] == f"{N} rows"
    for name in orders().columns:
        assert sum(line.split()[:1] == [name] for line in lines) == 1


def test_bad_plans_are_refused_in_one_sentence():
    with pytest.raises(InputError, match="colour is not an option of tables"):
        mmcnb.table_plan(orders(), colour="red")
    with pytest.raises(InputError, match="table must be a data frame or the path"):
        mmcnb.table_plan(np.eye(3))
    plan = mmcnb.table_plan(orders())
    with pytest.raises(InputError, match="keep cannot change a plan"):
        fitted(orders(), columns=plan, keep=["order_id"])
    with pytest.raises(InputError, match="delimiter"):
        mmcnb.table_plan(orders(), delimiter=";")
