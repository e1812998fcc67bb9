"""Cells of the studies of evolution, least squares, engine and peers, and what is made of them."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

from benchmarks import (
    _evolutionary_fits,
    _fits,
    _passes,
    _peers,
    _rls_large,
    _rls_tables,
    evolutionary,
    peers,
    rls,
)
from benchmarks._cells import LABEL_FREE, PAPER, Cell, written_once
from benchmarks._common import MNIST_PAIRS, Data, Goal, NoData, Options
from benchmarks._compare import compile_seconds
from benchmarks._journal import Journal
from benchmarks._parts import run_parts
from benchmarks._statistics import best
from benchmarks._tasks import TASKS, rows_of_task
from benchmarks.published import EVO, RLS, figure
from mmcnb import UnsupervisedRLS
from mmcnb.errors import InputError
from mmcnb.synthetic import make_block


def blobs(rows=60, columns=3):
    X, y = make_block("blobs", 0, rows, columns, random_state=0)
    return Data("blobs", X, y)


class Recorded:
    """A journal that hands over a frame, whatever is asked for."""

    def __init__(self, frame):
        self.frame = frame

    def rows(self, cells):
        self.cells = list(cells)
        return self.frame


# Parts


def good(options, journal):
    return {"good": pd.DataFrame({"a": [1]})}, [Goal("good", 1, 1)]


def bad(options, journal):
    raise InputError("no luck.")


def test_a_part_that_finds_nothing_does_not_stop_the_others(tmp_path, capsys):
    result = run_parts({"bad": bad, "good": good}, Options(tmp_path), None)
    assert list(result.tables) == ["good"]
    assert [goal.what for goal in result.goals] == ["good"]
    assert "bad is left out: no luck." in capsys.readouterr().err


def test_parts_that_all_find_nothing_say_why(tmp_path):
    with pytest.raises(InputError, match=r"no luck\."):
        run_parts({"bad": bad, "good": good}, Options(tmp_path, parts=("bad",)), None)
    with pytest.raises(InputError, match="choose from bad, good"):
        run_parts({"bad": bad, "good": good}, Options(tmp_path, parts=("ugly",)), None)


def test_the_best_may_be_the_largest():
    table = pd.DataFrame({"method": ["a", "a", "b"], "width": [1, 2, 1], "ari": [np.nan, 0.25, 0.5]})
    assert best(table, ["method"], "ari", largest=True)["width"].tolist() == [2, 1]


def test_the_last_store_is_kept_and_the_one_before_is_gone(tmp_path):
    written = []

    def write(path):
        path.mkdir()
        written.append(path)

    first = written_once(str(tmp_path), "first", write)
    assert written_once(str(tmp_path), "first", write) == first
    assert len(written) == 1
    written_once(str(tmp_path), "second", write)
    assert not written[0].exists()

    def fail(path):
        raise InputError("no such data.")

    with pytest.raises(NoData, match="no such data"):
        written_once(str(tmp_path), "third", fail)


def test_the_first_fit_is_timed_once_for_each_kind_of_rows_and_estimator():
    X = blobs().X
    first = compile_seconds(X, UnsupervisedRLS(2, random_state=0))
    assert first > 0
    assert compile_seconds(X[:30], UnsupervisedRLS(2, random_state=0)) == first
    assert compile_seconds(X, UnsupervisedRLS(3, random_state=0)) != first


# Cells


@pytest.mark.parametrize(
    "given", [{}, {"quick": True}, {"quick": True, "smoke": True, "rows": 200, "seeds": 1}]
)
def test_no_two_cells_are_alike_and_both_protocols_are_there(given, tmp_path):
    options = Options(tmp_path, **given)
    asked = {
        "evolutionary": list(evolutionary.cells_of(MNIST_PAIRS[0], options, "tables", 2)),
        "rls": [cell for name in _rls_tables.SETS for cell in _rls_tables.cells_of(name, options)],
        "engine": _fits.cells_of("a9a", options),
        "peers": list(peers.cells_of(options)),
    }
    for study, cells in asked.items():
        assert len({cell.identity for cell in cells}) == len(cells), study
        protocols = {cell.protocol for cell in cells}
        assert protocols == ({LABEL_FREE} if study == "peers" else {LABEL_FREE, PAPER}), study


def test_evolution_gets_the_rows_and_runs_that_the_paper_gives_it(tmp_path):
    def given(name, method):
        cells = evolutionary.cells_of(name, Options(tmp_path), "tables", 2)
        found = [cell for cell in cells if cell.method == method and cell.protocol == PAPER]
        assert {tuple(cell.parameters.values()) for cell in found} == {
            (width, ridge) for width in (1, 3, 5) for ridge in (2, 200, 1000)
        }
        rows, share = {cell.compute.args[1] for cell in found}, {cell.compute.args[4] for cell in found}
        runs = {cell.seed: set(cell.compute.args[5]) for cell in found}
        assert not runs[0] & runs[1]
        return rows.pop(), share.pop(), len(runs[0])

    assert given(MNIST_PAIRS[0], "EvoMMC") == (1000, 100, 3)
    assert given(MNIST_PAIRS[0], "FastEvoMMC") == (None, 100, 3)
    assert given("ionosphere", "EvoMMC") == (None, 10, 10)


def test_slow_peers_of_all_of_mnist_run_for_the_first_seed_alone(tmp_path):
    def seeds(task, method, **options):
        cells = peers.cells_of(Options(tmp_path, **options))
        return [cell.seed for cell in cells if (cell.dataset, cell.method) == (task, method)]

    assert seeds("mnist", "k-means") == [0]
    assert seeds("mnist", "k-means", rows=5000) == seeds("mnist", "UnsupervisedRLS") == [0, 1, 2]
    assert seeds("optdigits", "HDBSCAN") == [0, 1, 2]
    assert not seeds("mnist", "HDBSCAN")


def test_a_task_takes_its_own_rows_at_most(tmp_path):
    task = TASKS[-1]
    assert rows_of_task(task, Options(tmp_path)) == task.rows == 60_000
    assert rows_of_task(task, Options(tmp_path, rows=70)) == 70
    assert rows_of_task(TASKS[0], Options(tmp_path)) is None


# What a cell computes


@pytest.mark.parametrize("method", ["k-means", "EvoMMC", "FastEvoMMC"])
def test_of_some_runs_the_one_of_least_error_counts(method, monkeypatch):
    data = blobs()
    monkeypatch.setattr(_evolutionary_fits, "load_once", lambda name, rows: data)
    point = {} if method == "k-means" else {"width": 1.0, "ridge": 200.0}
    errors = [
        _evolutionary_fits.searched("blobs", None, method, point, 10, [seed])["error"] for seed in range(4)
    ]
    found = _evolutionary_fits.searched("blobs", None, method, point, 10, range(4))
    assert found["error"] == min(errors)
    assert found["mean_error"] == pytest.approx(np.mean(errors))
    assert (found["n"], found["d"]) == data.X.shape
    assert ("generations" in found) == (method != "k-means")


@pytest.mark.parametrize("method", ["EvoMMC", "FastEvoMMC", "mixed shaking"])
def test_methods_by_default_find_blobs(method, monkeypatch):
    monkeypatch.setattr(_evolutionary_fits, "load_once", lambda name, rows: blobs())
    assert _evolutionary_fits.fitted("blobs", None, method, 0)["error"] == 0


@pytest.mark.parametrize("method", ["Stoc-RLS", "Steep-RLS", "UMC-RLS"])
def test_a_search_keeps_every_cluster_and_depends_on_the_seed_alone(method):
    X = blobs(40).X.astype(float)
    R = _rls_tables.smoother(X @ X.T + np.eye(40), 0.1)
    labels = _rls_tables.divided(R, 3, method, 1)
    assert set(labels) == {0, 1, 2}
    np.testing.assert_array_equal(labels, _rls_tables.divided(R, 3, method, 1))


def test_the_smoother_is_that_of_the_paper():
    random = np.random.default_rng(0).normal(size=(6, 6))
    K = random @ random.T
    R = _rls_tables.smoother(K, 0.5)
    np.testing.assert_allclose(R, K @ np.linalg.inv(K + 0.5 * np.eye(6)), atol=1e-10)
    np.testing.assert_array_equal(R, R.T)


def test_moons_are_found_at_a_point_of_the_grid_and_not_by_k_means():
    mixed = _rls_tables.searched("moons", 300, _rls_tables.MIXED, 0, {"width": 0.2, "ridge": 2.0**-4})
    kmeans = _rls_tables.clustered("moons", 300, "k-means", 0, {"n_init": 1})
    assert mixed["ari"] > 0.95 > 0.6 > kmeans["ari"]


@pytest.mark.parametrize("method", [method for method in _peers.METHODS if method != "HDBSCAN"])
def test_every_peer_finds_blobs(method, monkeypatch):
    task, data = TASKS[0]._replace(name="blobs", n_clusters=2), blobs(200)
    monkeypatch.setattr(_peers, "load_task", lambda name, rows: (task, data))
    found = _peers.fitted("blobs", None, method, 0)
    assert (found["n"], found["d"], found["k"]) == (200, 3, 2)
    assert found["ari"] == 1
    assert found["balanced_error"] == found["error"] == 0


def test_passes_and_their_peers_are_timed_in_one_cell(tmp_path):
    found = _passes.scanned(str(tmp_path), 300, 1)
    assert found["n"] == 300
    assert found["scans"] == pytest.approx(found["seconds"] / found["bare_scan_seconds"])
    assert found["bare_scan_threads"] in _passes.SCAN_THREADS
    product = _passes.multiplied(300, 1)
    assert product["of_bare_rate"] == pytest.approx(product["bare_product_seconds"] / product["seconds"])


def test_arcs_are_written_once_for_the_cells_of_a_store(tmp_path):
    found = [
        compute(str(tmp_path), 400) for compute in (_rls_large.kmeans_of_a_sample, _rls_large.minibatches)
    ]
    assert found[0]["digest"] == found[1]["digest"]
    assert all(one["n"] == 400 and one["scans"] > 0 and one["ari"] > 0.2 for one in found)


# Tables and goals


def wide(**columns):
    given = {"status": "ok", "n": 9, "d": 2, "seconds": 1.0, "peak_mib": 1.0, "parameters": "{}", "seed": 0}
    return pd.DataFrame(given | columns)


def test_the_mean_over_the_pairs_is_published_for_all_of_them_alone():
    def mean(names):
        table = wide(dataset=list(names), protocol=PAPER, method="EvoMMC", error=0.25)
        return evolutionary.mean_of(table).iloc[0]

    every = mean(evolutionary.PAIRS)
    assert (every["dataset"], every["error"]) == ("optdigits-tes, 45 pairs", 0.25)
    assert every["published error"] == figure(EVO, "optdigits-tes, 45 pairs", "EvoMMC", "error")
    assert np.isnan(mean(evolutionary.PAIRS[:2])["published error"])


def test_goals_of_evolution_are_the_published_errors_and_shaking_has_that_of_evolution():
    rows = wide(
        dataset="ionosphere",
        protocol=[PAPER, PAPER, LABEL_FREE, LABEL_FREE],
        method=["EvoMMC", "k-means", "mixed shaking", "EvoMMC"],
        error=0.18,
    )
    goals = evolutionary.goals_of(rows)
    assert [goal.bound for goal in goals] == [17.94, 17.94]
    assert not any(goal.reached for goal in goals)


def test_the_tables_of_least_squares_take_the_point_of_largest_mean_and_tell_the_largest_run():
    frame = wide(
        dataset="iris",
        protocol=PAPER,
        method="UMC-RLS",
        parameters=["a", "a", "b", "b"],
        ari=[1.0, 0.5, 0.875, 0.8125],
    )
    row = _rls_tables.table_of(frame).iloc[0]
    assert (row["parameters"], row["runs"], row["largest ari"]) == ("b", 2, 0.875)
    assert row["ari"] == pytest.approx(0.84375)
    assert row["published ari"] == figure(RLS, "iris", "UMC-RLS", "ari")


def test_defaults_are_judged_by_ari_and_with_a_width_by_the_error():
    frame = wide(dataset=[TASKS[0].name, TASKS[-1].name], ari=0.9, balanced_error=0.03)
    goals = rls.goals_of(frame)
    assert [goal.reached for goal in goals] == [True, False]


@pytest.mark.parametrize(("labels", "equal"), [("aaa", 100), ("aab", 200 / 3)])
def test_workers_are_judged_by_the_labels_of_threads(labels, equal, tmp_path):
    frame = wide(workers=[0, 1, 2], labels_digest=list(labels)).assign(
        part="dask", protocol=LABEL_FREE, reason="", digest="x"
    )
    tables, (goal,) = _fits.dask(Options(tmp_path), Recorded(frame))
    assert goal.figure == pytest.approx(equal)
    assert tables["engine-dask"]["of threads"].tolist() == [1, 1, 1]


def test_a_failed_cell_does_not_spoil_the_table_of_peers(tmp_path):
    def cell(method, **found):
        return Cell("mnist-3v8", method, 0, partial(dict, **found) if found else partial(int, "x"))

    found = {"error": 0.5, "balanced_error": 0.5, "seconds": 2.0, "n": 9, "d": 2}
    cells = [
        cell("k-means", ari=0.1, **found),
        cell("UnsupervisedRLS", ari=0.2, **found),
        cell("spectral, extended"),
    ]
    with Journal("peers", Options(tmp_path)) as journal:
        frame = journal.rows(cells)
    result = peers.run(Options(tmp_path), Recorded(frame))
    assert result.tables["peers"]["method"].tolist() == ["k-means", "UnsupervisedRLS"]
    assert [goal.reached for goal in result.goals] == [False, True]
