"""What the page of the graph kernel says holds."""

import re
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score

import mmcnb
from mmcnb.features.graph import N_NEIGHBORS, N_NODES
from mmcnb.features.nodes import LEADING_AXES, LEAST_RECALL
from mmcnb.least_squares.graph_partition import graph_least_share

PAGE = (Path(__file__).parent.parent / "docs/graph.md").read_text()


def test_its_examples_run_and_find_the_rings():
    said: dict = {}
    for code in re.findall(r"^```python\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL):
        exec(code, said)
        assert adjusted_rand_score(said["y"], said["model"].labels_) == 1.0
    assert adjusted_rand_score(said["y"], said["labels"]) == 1.0
    assert said["model"].kernel == mmcnb.GraphKernel(15, 5000, "resolvent")


def test_few_odd_digits_are_a_cluster_only_where_the_minimum_lets_them():
    digits = load_digits().data
    model = mmcnb.UnsupervisedRLS(10, kernel="graph", random_state=0)
    smallest = [
        np.bincount(model.set_params(min_share=share).fit_predict(digits)).min() for share in (0.1, None)
    ]
    assert smallest[0] == 27
    assert smallest[1] > 30
    assert "a tenth lets 27 odd ones be a cluster, and 30 rows do not" in PAGE


def test_its_numbers_are_those_of_the_code():
    assert f"up to {N_NODES:,} rows" in PAGE
    assert f"its {N_NEIGHBORS} nearest nodes" in PAGE
    assert f"More than {LEADING_AXES} columns are reduced to {LEADING_AXES}" in PAGE
    assert f"{LEAST_RECALL:.1%}".replace("%", " %") in PAGE
    assert (graph_least_share(3, 10_000), graph_least_share(3, 100)) == (0.1, 0.2)
    assert graph_least_share(10, 2_000) * 2_000 / 10 == 30
    assert "a tenth of n/k for each of k clusters, or up to a fifth while that is fewer than 30 rows" in PAGE
