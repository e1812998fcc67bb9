"""What the page of the graph kernel says holds."""

import re
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score

import mmcnb

PAGE = (Path(__file__).parent.parent / "docs/graph.md").read_text()


def test_its_examples_run_and_find_the_rings():
    said: dict = {}
    for code in re.findall(r"^```python\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL):
        exec(code, said)
        assert adjusted_rand_score(said["y"], said["model"].labels_) == 1.0
    assert adjusted_rand_score(said["y"], said["labels"]) == 1.0
    assert said["model"].kernel == mmcnb.GraphKernel(15, 5000, "resolvent")


def test_few_odd_digits_are_a_cluster_only_if_the_minimum_lets_them():
    digits = load_digits().data
    model = mmcnb.UnsupervisedRLS(10, kernel="graph", random_state=0)
    smallest = [
        np.bincount(model.set_params(min_share=share).fit_predict(digits)).min() for share in (0.1, None)
    ]
    assert smallest[0] == 27
    assert smallest[1] > 30
