"""
Which words mark my topics?
===========================

Texts are long rows of small numbers, and no single number distinguishes a topic.
``explain`` therefore lists words. The example generates 1,200 texts on three topics;
each text has words of its topic among words that all topics share.
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
    """Generate a text of 10 to 40 words, a quarter of which are words of its topic."""
    length = int(random.integers(10, 41))
    own = random.choice(OWN[topic].split(), length // 4)
    return " ".join([*own, *random.choice(SHARED.split(), length - length // 4)])


texts = [made_text(topic) for topic in random.integers(0, 3, 1200)]
words = TfidfVectorizer()
rows = anndata.AnnData(words.fit_transform(texts).tocsr())
rows.var_names = words.get_feature_names_out()

# %%
# An AnnData object, or a frame of sparse columns, provides the words as names of the
# columns.

model = mmcnb.UnsupervisedRLS(n_clusters=3, kernel="linear", random_state=0).fit(rows)
explanation = model.explain(rows)
print(explanation)

# %% The score of a word is its share of the words in the cluster, multiplied by a
# logarithm that is small for words that occur in all clusters.

figure, axes = plt.subplots(1, 3, figsize=(8, 3), layout="constrained")
for ax, (cluster, own) in zip(axes, explanation.words.groupby("cluster"), strict=True):
    ax.barh(own["word"], own["score"])
    ax.set(title=f"cluster {cluster}", xlabel="score")
    ax.invert_yaxis()
plt.show()
