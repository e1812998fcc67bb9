"""Estimators know their columns by name, and say which are missing, new or in another order."""

import numpy as np
import pandas as pd
import pytest
from sklearn.utils.estimator_checks import check_dataframe_column_names_consistency

import mmcnb
from mmcnb.errors import InputError
from mmcnb.samples import open_samples
from mmcnb.stores import create_dense_store
from tests.estimators.conftest import make, make_blobs

NAMES = [f"gene {column}" for column in range(8)]


@pytest.fixture
def X():
    return make_blobs(80, d=8)


@pytest.fixture
def stored(tmp_path):
    """A function that writes rows with names and gives their path."""

    def write(X, names):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.zarr"
        with create_dense_store(path, X.shape[1], dtype="float64") as writer:
            writer.append(X)
            writer.feature_names = names
        return path

    return write


def test_names_are_kept_in_the_file_and_in_their_order(stored, X, tmp_path):
    model = make("CPMMC").fit(stored(X, NAMES))
    model.save(tmp_path / "model")
    for one in (model, mmcnb.load(tmp_path / "model")):
        assert one.feature_names_in_.tolist() == NAMES
        assert one.feature_names_in_.dtype == object
        assert one.predict(stored(X, NAMES)).tobytes() == model.labels_.tobytes()
        for ask in (one.predict, one.decision_function):
            with pytest.raises(
                InputError,
                match=r"Feature names must be in the same order as they were in fit",
            ):
                ask(stored(X, NAMES[::-1]))


def test_a_fit_without_names_forgets_those_of_the_fit_before(X, stored, tmp_path):
    for bare in (X, stored(X, None), pd.DataFrame(X)):
        model = make("CPMMC").fit(stored(X, NAMES)).fit(bare)
        assert not hasattr(model, "feature_names_in_")
    model.save(tmp_path / "model")
    assert not hasattr(mmcnb.load(tmp_path / "model"), "feature_names_in_")


def test_names_missing_and_new_are_listed(stored, X):
    model = make("CPMMC").fit(stored(X, NAMES))
    with pytest.raises(
        InputError, match=r"unseen at fit time:\n- other\n.*now missing:\n- gene 0\n"
    ):
        model.predict(stored(X, ["other", *NAMES[1:]]))
    with pytest.raises(
        InputError, match=r"now missing:\n- gene 1\n(- .*\n){4}- \.\.\.\n"
    ):
        model.predict(stored(X[:, :1], NAMES[:1]))


def test_rows_with_names_and_rows_without_are_told_apart_by_a_warning(stored, X):
    with_names = make("CPMMC").fit(stored(X, NAMES))
    without = make("CPMMC").fit(X)
    for bare in (X, stored(X, None), open_samples(X)):
        with pytest.warns(
            UserWarning,
            match="^X does not have valid feature names, but CPMMC was fitted",
        ):
            assert with_names.predict(bare).tobytes() == with_names.labels_.tobytes()
    with pytest.warns(
        UserWarning, match="^X has feature names, but CPMMC was fitted without"
    ):
        without.predict(stored(X, NAMES))


@pytest.mark.parametrize(
    "name", ["CPMMC", "UnsupervisedRLS", "MaximumMarginClustering"]
)
def test_scikit_learns_check_of_names(name):
    check_dataframe_column_names_consistency(name, getattr(mmcnb, name)())


def test_a_model_file_with_names_for_other_columns_is_refused(X, tmp_path):
    model = make("CPMMC").fit(pd.DataFrame(X, columns=NAMES))
    model.feature_names_in_ = np.array(NAMES[:3], dtype=object)
    model.save(tmp_path / "model")
    with pytest.raises(
        InputError, match=r"model: feature_names has 3 entries for 8 columns"
    ):
        mmcnb.load(tmp_path / "model")


def test_names_that_are_equal_are_refused_in_one_sentence(X):
    anndata = pytest.importorskip("anndata")
    with pytest.warns(UserWarning, match="not unique"):
        cells = anndata.AnnData(X, var=pd.DataFrame(index=[""] * 8))
    with pytest.raises(InputError, match=r"^[^\n]*unique column names[^\n]*\.$"):
        make("CPMMC").fit(X).predict(cells)
