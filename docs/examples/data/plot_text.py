"""
How do I cluster texts?
=======================

Count words, weight them by TF-IDF, and pass the sparse matrix. Raw counts separate long
texts from short ones. The example generates 1,500 texts on three topics, each a mixture
of words of its topic and words that all topics share.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.metrics import adjusted_rand_score

import mmcnb

random = np.random.default_rng(0)
OWN = [
    ["orbit", "launch", "rocket", "moon", "crew", "engine", "planet", "thrust"],
    ["flour", "oven", "butter", "dough", "sugar", "bake", "crust", "yeast"],
    ["goal", "match", "league", "striker", "keeper", "penalty", "pitch", "coach"],
]
SHARED = [f"word{number}" for number in range(400)]


def made_text(topic):
    """Generate a text of 20 to 400 words, a fifth of which are words of its topic."""
    length = int(np.exp(random.uniform(np.log(20), np.log(400))))
    own = random.choice(OWN[topic], length // 5)
    return " ".join([*own, *random.choice(SHARED, length - length // 5)])


y = random.integers(0, 3, 1500)
counts = CountVectorizer().fit_transform([made_text(topic) for topic in y])
weighed = TfidfTransformer(sublinear_tf=True).fit_transform(counts)

# %%
# ``kernel="linear"`` is the cosine of two texts, because TF-IDF rows have length 1.

found = {}
for name, X in {"counts": counts.astype(float), "TF-IDF": weighed}.items():
    model = mmcnb.UnsupervisedRLS(
        n_clusters=3, kernel="linear", max_passes=10, random_state=0
    ).fit(X)
    found[name] = model.labels_
    print(
        f"{name}: adjusted Rand index with the topics {adjusted_rand_score(y, model.labels_):.2f}"
    )

# %%
# The plot shows the texts along two directions of the TF-IDF matrix, which is not made
# dense for it.

plane = TruncatedSVD(3, random_state=0).fit_transform(weighed)[:, 1:]
figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
for ax, (name, labels) in zip(axes, found.items(), strict=True):
    ax.scatter(*plane.T, c=labels, cmap="Set2", s=5)
    ax.set(title=name, xticks=[], yticks=[])
plt.show()
