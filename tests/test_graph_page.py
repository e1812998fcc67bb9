"""The examples of the page of the graph run, and find the rings."""

import re
from pathlib import Path

import numpy as np
from sklearn.metrics import adjusted_rand_score

PAGE = (Path(__file__).parent.parent / "docs/graph.md").read_text()


def test_its_examples_run_and_find_the_rings():
    said: dict = {}
    for code in re.findall(r"^```python\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL):
        exec(code, said)
        assert adjusted_rand_score(said["y"], said["model"].labels_) == 1.0
    np.testing.assert_array_equal(said["model"].predict(said["X"]), said["model"].labels_)
