"""Gaps are filled from the nearest rows of the fit: alike from any source, and told."""

import warnings

import anndata
import numpy as np
import pandas as pd
import pytest
import zarr
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import nan_euclidean_distances

import mmcnb
from mmcnb.columns.gap_clusters import gaps_of_clusters
from mmcnb.engine.checkpoint import is_finished
from mmcnb.errors import ClusterWarning, DamagedStoreError, InputError
from mmcnb.stores import convert
from mmcnb.stores.report import verify_store
from tests.engine.fakes import after_each_pass

N = 600


def groups(share=0.2, seed=0):
    """Return three groups of rows with gaps, and the group of each row."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, N)
    centres = 7.0 * np.eye(3)[:, [0, 1, 2, 0, 1, 2]]
    X = centres[y] + rng.normal(size=(N, 6))
    gaps = rng.random((N, 3)) < share
    X[:, :3][gaps] = np.nan
    return X, y


def mixed(share=0.2):
    """Return a frame of numbers, a text and a flag with gaps."""
    X, y = groups(share)
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(X, columns=[f"sensor_{k}" for k in range(6)])
    frame["kind"] = np.array(["oak", "elm", "fir"], object)[y]
    frame.loc[rng.random(N) < share, "kind"] = None
    frame["wet"] = rng.random(N) < 0.5
    return frame


def fitted(rows, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ClusterWarning)
        return mmcnb.MaximumMarginClustering(3, random_state=0).fit(rows, **options)


def predicted(model, rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ClusterWarning)
        return model.predict(rows)


def sources(frame, folder):
    """Yield the same rows as a frame, files, and what `read_table` opens."""
    frame.to_csv(folder / "rows.csv", index=False)
    frame.to_parquet(folder / "rows.parquet", row_group_size=170)
    yield frame
    yield folder / "rows.csv"
    yield folder / "rows.parquet"
    yield mmcnb.read_table(frame)
    yield mmcnb.read_table(folder / "rows.csv")
    yield mmcnb.open_samples(folder / "rows.parquet")


def array_sources(X, folder):
    """Yield the same rows as an array, files and stores with chunks of other sizes."""
    np.save(folder / "rows.npy", X)
    yield X
    yield folder / "rows.npy"
    for length in (101, 600):
        store = folder / f"rows-{length}.zarr"
        array = zarr.create_array(
            store, shape=X.shape, chunks=(length, 6), dtype=X.dtype
        )
        array[:] = X
        yield store
    yield mmcnb.read_table(X)


def test_groups_are_found_although_cells_are_missing():
    X, y = groups()
    model = fitted(pd.DataFrame(X, columns=list("abcdef")))
    assert adjusted_rand_score(y, model.labels_) > 0.95


def with_medians(X):
    """Return rows whose gaps are the medians of the five nearest rows, one by one."""
    filled = X.copy()
    distances = nan_euclidean_distances(X)
    for i, k in np.argwhere(np.isnan(X)):
        known = np.flatnonzero(~np.isnan(X[:, k]))
        nearest = known[np.argsort(distances[i, known], kind="stable")[:5]]
        filled[i, k] = np.median(X[nearest, k])
    return filled


def test_a_gap_gets_the_median_of_the_five_nearest_rows():
    X, _ = groups()
    rows = mmcnb.read_table(X, missing="neighbors")
    np.testing.assert_array_equal(rows.block(0, N), with_medians(X))


@pytest.mark.parametrize("share", [0.4, 0.5])
def test_gaps_between_two_groups_of_values_are_no_clusters(share):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(N, 3)), columns=list("abc"))
    frame["d"] = 30.0 * (rng.random(N) < 0.5) + rng.normal(size=N)
    is_gap = rng.random(N) < share
    high = frame["d"] > 15
    frame.loc[is_gap, "d"] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ClusterWarning)
        model = mmcnb.MaximumMarginClustering(random_state=0).fit(frame)
    assert model.n_clusters_ == 2
    assert adjusted_rand_score(high[~is_gap], model.labels_[~is_gap]) > 0.95


def test_numbers_are_compared_in_comparable_units():
    X, _ = groups()
    units = np.array([1.0, 1000.0, 0.01, 1.0, 50.0, 1.0])
    frame = pd.DataFrame(X * units, columns=list("abcdef"))
    found = mmcnb.read_table(frame, missing="neighbors").block(0, N) / units
    raw = with_medians(X * units) / units
    whole = np.isnan(X)
    truth = with_medians(X)
    error = np.abs(found - truth)[whole].mean()
    assert error < np.abs(raw - truth)[whole].mean() / 2


def test_whole_numbers_and_texts_get_values_that_there_are():
    frame = mixed().assign(rating=np.r_[np.arange(N - 40) % 5 + 1.0, [np.nan] * 40])
    rows = mmcnb.read_table(frame, missing="neighbors")
    table = pd.DataFrame(rows.block(0, N), columns=rows.feature_names)
    assert set(table["rating"]) == {1, 2, 3, 4, 5}
    texts = table[["kind_elm", "kind_fir", "kind_oak"]]
    assert (texts.sum(axis=1) == 1).all()
    known = frame["kind"].notna()
    guessed = texts.idxmax(axis=1).str.removeprefix("kind_")
    assert (guessed[known] == frame["kind"][known]).all()


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_all_sources_give_the_same_labels_and_predict_repeats_them(tmp_path, share):
    frame = mixed(share)
    expected = fitted(frame).labels_
    for source in sources(frame, tmp_path):
        model = fitted(source)
        np.testing.assert_array_equal(model.labels_, expected)
        np.testing.assert_array_equal(predicted(model, source), expected)


def test_arrays_with_gaps_give_the_same_labels_from_any_source(tmp_path):
    X, y = groups()
    expected = fitted(X).labels_
    assert adjusted_rand_score(y, expected) > 0.95
    for source in array_sources(X, tmp_path):
        model = fitted(source)
        np.testing.assert_array_equal(model.labels_, expected)
        np.testing.assert_array_equal(predicted(model, source), expected)


def test_a_generator_is_drawn_from_once_whatever_the_source(tmp_path):
    X, _ = groups()
    labels = []
    for source in array_sources(X, tmp_path):
        generator = np.random.RandomState(3)
        model = mmcnb.CPMMC(random_state=generator)
        with pytest.warns(ClusterWarning, match="filled from the nearest rows"):
            model.fit(source)
        labels.append((model.labels_.tobytes(), generator.randint(2**30)))
    assert len(set(labels)) == 1


@pytest.mark.parametrize("form", ["array", "frame", "CSV"])
def test_a_fit_without_gaps_fills_those_of_other_rows(tmp_path, form):
    X, y = groups(share=0.0)
    with_gaps, _ = groups()
    rows = [X, with_gaps]
    if form != "array":
        rows = [pd.DataFrame(values, columns=list("abcdef")) for values in rows]
    if form == "CSV":
        for k, frame in enumerate(rows):
            frame.to_csv(tmp_path / f"{k}.csv", index=False)
        rows = [tmp_path / "0.csv", tmp_path / "1.csv"]
    model = fitted(rows[0])
    model.save(tmp_path / "model")
    for known in (model, mmcnb.load(tmp_path / "model")):
        with pytest.warns(ClusterWarning, match="filled from the nearest rows"):
            labels = known.predict(rows[1])
        assert adjusted_rand_score(y, labels) > 0.95


@pytest.mark.parametrize("form", [".npy", "Zarr", "Dask"])
def test_a_fit_without_gaps_fills_those_that_a_pass_finds(tmp_path, form):
    X, _ = groups(share=0.0)
    with_gaps, _ = groups()
    with_gaps[:300] = X[:300]
    rows = tmp_path / "rows.npy"
    np.save(rows, with_gaps)
    if form == "Zarr":
        rows = tmp_path / "rows.zarr"
        array = zarr.create_array(rows, shape=X.shape, chunks=(101, 6), dtype=X.dtype)
        array[:] = with_gaps
    if form == "Dask":
        dask_array = pytest.importorskip("dask.array")
        rows = dask_array.from_array(with_gaps, chunks=(101, 6))
    model = fitted(X)
    for opened in (rows, mmcnb.open_samples(rows)):
        with pytest.warns(
            ClusterWarning, match="missing values are filled from the"
        ) as caught:
            labels = model.predict(opened)
        assert len(caught) == 1
        np.testing.assert_array_equal(labels, predicted(model, with_gaps))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ClusterWarning)
        assert str(model.explain(rows)) == str(model.explain(with_gaps))
        assert model.score(rows) == model.score(with_gaps)
        np.testing.assert_array_equal(
            model.predict_proba(rows), model.predict_proba(with_gaps)
        )


@pytest.mark.parametrize("keeps_state", [False, True])
def test_an_update_and_a_fit_like_another_fill_gaps_that_a_pass_finds(
    tmp_path, keeps_state
):
    X, _ = groups(share=0.0)
    with_gaps, _ = groups()
    np.save(tmp_path / "rows.npy", with_gaps)
    expected = predicted(fitted(X), with_gaps)
    model = fitted(X)
    if keeps_state:
        model.set_params(checkpoint=tmp_path / "checkpoint")
    with pytest.warns(
        ClusterWarning, match="missing values are filled from the nearest"
    ):
        model.update(tmp_path / "rows.npy")
    np.testing.assert_array_equal(model.labels_, expected)
    again = fitted(tmp_path / "rows.npy", like=fitted(X[::-1]))
    assert adjusted_rand_score(again.labels_, expected) > 0.95


def test_a_report_about_rows_with_gaps_warns_of_them_once(tmp_path):
    np.save(tmp_path / "rows.npy", groups()[0])
    model = fitted(groups(share=0.0)[0])
    with pytest.warns(ClusterWarning, match="missing values are filled") as caught:
        model.write_report(tmp_path / "rows.npy", tmp_path / "page.html")
    assert len(caught) == 1
    assert (tmp_path / "page.html").exists()


def test_a_support_cluster_machine_labels_rows_with_gaps_that_its_fit_left_out():
    frame = mixed()
    is_whole = frame.notna().all(axis=1)
    _, y = groups()
    rare = y == 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ClusterWarning)
        rows = mmcnb.read_table(frame, missing="drop")
        model = mmcnb.SupportClusterMachine(random_state=0).fit(rows, rare[is_whole])
        assert (model.predict(frame) == rare).mean() > 0.95


@pytest.mark.parametrize("form", ["array", "frame"])
def test_a_fit_that_left_out_rows_with_gaps_labels_such_rows(tmp_path, form):
    rows, y = groups()
    if form == "frame":
        rows = mixed()
    model = fitted(mmcnb.read_table(rows, missing="drop"))
    assert len(model.labels_) < N
    model.save(tmp_path / "model")
    for known in (model, mmcnb.load(tmp_path / "model")):
        with pytest.warns(ClusterWarning, match="filled from the nearest rows"):
            labels = known.predict(rows)
        assert adjusted_rand_score(y, labels) > 0.95
        assert (labels[model.row_index_] == model.labels_).all()


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_labels_of_stored_cells_with_gaps_have_their_names(tmp_path, share):
    X, _ = groups(share)
    names = [f"cell{k}" for k in range(N)]
    cells = anndata.AnnData(groups()[0], obs=pd.DataFrame(index=names))
    model = fitted(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # anndata announces its next format
        cells.write_zarr(tmp_path / "cells.zarr")
        model.predict(tmp_path / "cells.zarr", out=tmp_path / "labels.csv")
    assert pd.read_csv(tmp_path / "labels.csv", index_col=0).index.tolist() == names


def test_a_batch_changes_nothing_of_how_gaps_are_filled():
    frame = mixed()
    model = fitted(frame)
    one_by_one = [predicted(model, frame[k : k + 1])[0] for k in range(0, N, 37)]
    np.testing.assert_array_equal(one_by_one, model.labels_[::37])


def test_an_update_fills_gaps_from_the_rows_of_the_fit():
    frame = mixed()
    model = fitted(frame[:400])
    expected = predicted(model, frame[400:])
    with pytest.warns(ClusterWarning, match="filled from the nearest rows"):
        model.update(frame[400:])
    np.testing.assert_array_equal(model.labels_, expected)


def test_cells_with_gaps_are_clustered_and_scored(tmp_path):
    X, y = groups()
    expected = fitted(X).labels_
    cells = anndata.AnnData(X)
    model = fitted(cells)
    np.testing.assert_array_equal(model.labels_, expected)
    np.testing.assert_array_equal(predicted(model, cells), expected)
    with pytest.warns(ClusterWarning, match="filled from the nearest rows"):
        mmcnb.annotate(cells, 3, random_state=0)
    np.testing.assert_array_equal(cells.obs["mmcnb"].astype(int), expected)
    filled = mmcnb.read_table(X, missing="neighbors").block(0, N)
    np.save(tmp_path / "rows.npy", X)
    for rows in (X, cells, tmp_path / "rows.npy"):
        assert mmcnb.partition_score(rows, y) == mmcnb.partition_score(filled, y)


def test_a_stopped_fit_of_rows_with_gaps_ends_as_if_it_had_run_on(tmp_path):
    X, _ = groups()
    path = tmp_path / "rows.npy"
    np.save(path, X)
    expected = fitted(path)

    class Stop(Exception):
        """Stands for a kill."""

    def stop(number):
        if number > 1:
            raise Stop

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ClusterWarning)
        model = mmcnb.MaximumMarginClustering(
            3, random_state=0, checkpoint=tmp_path / "run"
        )
        with pytest.raises(Stop), after_each_pass(stop):
            model.fit(path)
        assert not is_finished(tmp_path / "run")
        model.fit(path)
    assert is_finished(tmp_path / "run")
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    np.testing.assert_array_equal(predicted(model, path), expected.labels_)


def test_the_sentence_counts_gaps_of_numbers_and_texts():
    frame = mixed()
    with pytest.warns(ClusterWarning) as caught:
        mmcnb.CPMMC(random_state=0).fit(frame)
    count = int(frame["kind"].isna().sum())
    assert any(f"{count} in 'kind'" in str(one.message) for one in caught)


def test_a_fit_of_the_converted_table_is_the_fit_of_the_table(tmp_path):
    frame = mixed().assign(price=[f"$ {k % 90 + 9}" for k in range(N)])
    path = tmp_path / "rows.csv"
    frame.to_csv(path, index=False)
    model = fitted(path)
    report = convert(path, tmp_path / "rows.zarr")
    assert any("gaps are stored as NaN" in note for note in report["notes"])
    convert(tmp_path / "rows.zarr", tmp_path / "again.zarr")
    for name in ("rows.zarr", "again.zarr"):
        store = tmp_path / name
        assert np.isnan(np.asarray(zarr.open(store)["X"][:])).any()
        of_store = fitted(store)
        np.testing.assert_array_equal(of_store.labels_, model.labels_)
        np.testing.assert_array_equal(predicted(of_store, path), model.labels_)
        np.testing.assert_array_equal(predicted(model, store), model.labels_)
        samples = mmcnb.open_samples(store)
        np.testing.assert_array_equal(
            samples.block(0, N), mmcnb.open_samples(path).block(0, N)
        )
        assert fitted(samples).labels_.tobytes() == model.labels_.tobytes()
    assert verify_store(tmp_path / "rows.zarr")["verdict"].startswith("every chunk")


def test_a_store_without_gaps_has_no_word_of_them(tmp_path):
    mixed(0.0).to_csv(tmp_path / "rows.csv", index=False)
    convert(tmp_path / "rows.csv", tmp_path / "rows.zarr")
    assert "gaps" not in zarr.open(tmp_path / "rows.zarr")["X"].attrs


@pytest.mark.parametrize("form", ["array", "frame", "CSV"])
def test_a_row_without_values_is_refused_and_named(tmp_path, form):
    X, _ = groups()
    X[5] = np.nan
    rows = X
    if form != "array":
        rows = pd.DataFrame(X, columns=list("abcdef"))
    if form == "CSV":
        rows.to_csv(tmp_path / "rows.csv", index=False)
        rows = tmp_path / "rows.csv"
    place = "line 7" if form == "CSV" else "row 5"
    with pytest.raises(InputError, match=f"{place}: the row has no value"):
        fitted(rows)
    assert fitted(mmcnb.read_table(rows, missing="median")).labels_.size == N
    with pytest.raises(InputError, match="the row has no value"):
        predicted(fitted(groups()[0]), X)


def test_a_missing_chunk_is_no_block_of_gaps(tmp_path):
    X, _ = groups(share=0.0)
    store = tmp_path / "rows.zarr"
    array = zarr.create_array(
        store, shape=X.shape, chunks=(200, 3), dtype=X.dtype, fill_value=np.nan
    )
    array[:] = X
    (store / "c" / "1" / "1").unlink()
    with pytest.raises(DamagedStoreError, match="chunk c/1/1 is missing"):
        fitted(store)


def test_a_damaged_model_file_with_donors_is_refused():
    donors = fitted(groups()[0]).model_.encoding.donors
    arrays = donors.arrays()
    again = type(donors).restore(arrays)
    np.testing.assert_array_equal(again.rows, donors.rows)
    for name in arrays:
        others = {key: value for key, value in arrays.items() if key != name}
        if name != "donor_rows":
            with pytest.raises(InputError, match=f"{name} is missing"):
                type(donors).restore(others)
    with pytest.raises(InputError, match="differ in shape"):
        type(donors).restore(arrays | {"donor_unit": np.zeros(3)})


def test_a_question_that_one_group_is_never_asked_keeps_the_group_whole(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, N)
    X = 8.0 * np.eye(3)[y] + rng.normal(size=(N, 3))
    frame = pd.DataFrame(np.c_[X, 3.0 * y + rng.normal(size=N)], columns=list("abcd"))
    frame.loc[y == 1, "d"] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ClusterWarning)
        model = mmcnb.MaximumMarginClustering(random_state=0).fit(frame)
    assert adjusted_rand_score(y, model.labels_) > 0.95
    (gaps,) = model.report_["gaps"]
    assert gaps["column"] == "d"
    assert sorted(gaps["clusters"]) == pytest.approx([0, 0, 1], abs=0.05)
    model.save(tmp_path / "model")
    assert mmcnb.load(tmp_path / "model").report_["gaps"] == [gaps]


def test_clusters_that_gaps_make_are_doubted(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(N, 3)), columns=list("abc"))
    frame["d"] = 30.0 * (rng.random(N) < 0.5) + rng.normal(size=N)
    frame.loc[rng.random(N) < 0.5, "d"] = np.nan
    frame.to_csv(tmp_path / "rows.csv", index=False)
    for source in (frame, tmp_path / "rows.csv"):
        rows = mmcnb.read_table(source, missing="mean")
        with pytest.warns(ClusterWarning, match="rows in which 'd' has missing values"):
            model = mmcnb.MaximumMarginClustering(3, random_state=0).fit(rows)
        assert model.report_["trust"]["level"] == "low"
        (gaps,) = model.report_["gaps"]
        assert max(gaps["clusters"]) > 0.9


def test_gaps_tell_nothing_if_other_columns_tell_the_clusters():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(N, 3))
    labels = np.arange(N) % 2
    rows[labels == 0, 2] = np.nan
    is_text = np.zeros(3, bool)
    assert gaps_of_clusters(rows, is_text, "abc", labels).names == ["c"]
    rows[labels == 0, 0] += 9
    assert not gaps_of_clusters(rows, is_text, "abc", labels).names


def test_no_rows_of_a_source_with_gaps_can_be_read(tmp_path):
    for source in array_sources(groups()[0], tmp_path):
        samples = mmcnb.read_table(source, missing="neighbors")
        assert samples.block(7, 7).shape == (0, 6)
