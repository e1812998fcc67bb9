"""BERTopic with the default in place of HDBSCAN, where it is installed."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from tests.estimators.front_door import front_door

pytestmark = pytest.mark.filterwarnings("ignore")  # of BERTopic and what it imports

WORDS = (
    "rain snow wind cloud storm",
    "goal match team score coach",
    "bread soup salt oven spoon",
)


@pytest.mark.parametrize("noise", [None, 0.02])
def test_topics_are_the_clusters_of_the_embeddings(noise):
    bertopic = pytest.importorskip(
        "bertopic", reason="bertopic is installed by its users"
    )
    dimensionality = pytest.importorskip("bertopic.dimensionality")
    random = np.random.default_rng(0)
    subject = random.integers(3, size=300)
    texts = [" ".join(random.choice(WORDS[one].split(), 8)) for one in subject]
    embeddings = random.normal(size=(3, 20))[subject] + 0.3 * random.normal(
        size=(300, 20)
    )
    topics = bertopic.BERTopic(
        hdbscan_model=front_door(metric="cosine", noise=noise),
        umap_model=dimensionality.BaseDimensionalityReduction(),
        embedding_model=None,
    )
    labels = np.array(topics.fit_transform(texts, embeddings)[0])
    expected = front_door(metric="cosine", noise=noise).fit(embeddings).labels_
    np.testing.assert_array_equal(labels == -1, expected == -1)
    # BERTopic numbers topics by their sizes
    assert adjusted_rand_score(expected, labels) == 1
    assert noise is not None or adjusted_rand_score(subject, labels) == 1
    np.testing.assert_array_equal(
        topics.transform(texts[:50], embeddings[:50])[0], labels[:50]
    )
