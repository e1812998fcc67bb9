"""
Which words mark my topics?
===========================

Texts are long rows of small numbers, and no single number sets a topic apart.
``explain`` then lists words. The texts are made here: 1,200 of three topics, each with
words of its own among words that all topics share.
"""

import anndata
import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

import mmcnb

random = np.random.default_rng(0)
OWN = [
    "orbit launch rocket moon crew engine planet thrust probe comet crater module lander solar",
    "flour oven butter dough sugar bake crust yeast cream honey vanilla almond glaze whisk",
    "goal match league striker keeper penalty pitch coach season referee header corner fans cup",
]
SHARED = "week people told made time city world good long part day year work group"


def made_text(topic):
    """A text of 10 to 40 words, a quarter of them of its topic."""
    length = int(random.integers(10, 41))
    own = random.choice(OWN[topic].split(), length // 4)
    return " ".join([*own, *random.choice(SHARED.split(), length - length // 4)])


texts = [made_text(topic) for topic in random.integers(0, 3, 1200)]
words = TfidfVectorizer()
rows = anndata.AnnData(words.fit_transform(texts).tocsr())
rows.var_names = words.get_feature_names_out()

# %%
# AnnData, or a frame of sparse columns, provides the names of the columns.

model = mmcnb.UnsupervisedRLS(n_clusters=3, kernel="linear", random_state=0).fit(rows)
explanation = model.explain(rows)
print(explanation)

# %% The score of a word is its share in the cluster times a logarithm that is small for
# words that occur in all clusters.

figure, axes = plt.subplots(1, 3, figsize=(8, 3), layout="constrained")
for ax, (cluster, own) in zip(axes, explanation.words.groupby("cluster"), strict=True):
    ax.barh(own["word"], own["score"])
    ax.set(title=f"cluster {cluster}", xlabel="score")
    ax.invert_yaxis()
plt.show()
