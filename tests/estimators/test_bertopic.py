"""BERTopic with the default in place of HDBSCAN, where it is installed."""

import warnings

import numpy as np
import pytest

import mmcnb

pytestmark = pytest.mark.filterwarnings("ignore")  # of BERTopic and what it imports

WORDS = ("rain snow wind cloud storm", "goal match team score coach", "bread soup salt oven spoon")


@pytest.fixture(scope="module")
def bertopic():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = pytest.importorskip("bertopic", reason="bertopic is installed by its users")
        return module, pytest.importorskip("bertopic.dimensionality")


@pytest.fixture(scope="module")
def texts():
    """Three subjects, and a direction of 20 columns for each text near that of its subject."""
    random = np.random.default_rng(0)
    subject = random.integers(3, size=300)
    found = [" ".join(random.choice(WORDS[one].split(), 8)) for one in subject]
    embeddings = random.normal(size=(3, 20))[subject] + 0.3 * random.normal(size=(300, 20))
    return subject, found, embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)


@pytest.mark.parametrize("noise", [None, 0.02])
def test_topics_are_the_clusters_of_the_embeddings(bertopic, texts, noise):
    module, dimensionality = bertopic
    subject, found, embeddings = texts
    model = mmcnb.MaximumMarginClustering(metric="cosine", noise=noise, random_state=0)
    topics = module.BERTopic(
        hdbscan_model=model, umap_model=dimensionality.BaseDimensionalityReduction(), embedding_model=None
    )
    labels, _ = topics.fit_transform(found, embeddings)
    labels = np.array(labels)
    own = mmcnb.MaximumMarginClustering(metric="cosine", noise=noise, random_state=0).fit(embeddings)
    assert (labels == -1).sum() == (own.labels_ == -1).sum() == (0 if noise is None else 6)
    for cluster in range(3):  # BERTopic numbers topics by their sizes
        topic = labels[own.labels_ == cluster]
        assert np.unique(topic).size == 1
        top = {word for word, _ in topics.get_topic(int(topic[0]))[:5]}
        assert top == set(WORDS[subject[own.labels_ == cluster][0]].split())
    again, _ = topics.transform(found[:50], embeddings[:50])
    assert np.array_equal(again, labels[:50])
