"""scikit-learn's metadata routing, and the front door inside a pipeline."""

import numpy as np
import pytest
import sklearn
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mmcnb
from mmcnb.datasets import make_shape

X, _ = make_shape("two-moons", 200, random_state=0)


def test_sample_weights_are_routed_through_a_pipeline_if_they_are_asked_for():
    weights = np.ones(len(X))
    weights[:3] = 5
    model = mmcnb.MaximumMarginClustering(2, random_state=0)
    with sklearn.config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_fit_request(sample_weight=True)
        with pytest.raises(
            UnsetMetadataPassedError, match=r"MaximumMarginClustering\.fit"
        ):
            make_pipeline(scaler, model).fit(X, sample_weight=weights)
        model.set_fit_request(sample_weight=True)
        fitted = make_pipeline(scaler, model).fit(X, sample_weight=weights)
    assert fitted[-1].cluster_sizes_.sum() == len(X) + 12
    alone = mmcnb.MaximumMarginClustering(2, random_state=0).fit(
        scaler.transform(X), sample_weight=weights
    )
    np.testing.assert_array_equal(fitted[-1].labels_, alone.labels_)
