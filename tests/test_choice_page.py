"""The examples of the page of the choice run, and find the blobs."""

import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

PAGE = (Path(__file__).parent.parent / "docs/choice.md").read_text()


@pytest.mark.slow
def test_its_examples_run_and_find_the_blobs():
    said: dict = {}
    codes = re.findall(r"^```python\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    exec(codes[0], said)
    model = said["model"]
    assert model.n_clusters_ == 7
    assert model.report_["trust"]["level"] == "high"
    np.testing.assert_array_equal(model.predict_proba(said["X"]).argmax(axis=1), model.labels_)
    for code in codes[1:]:
        exec(code, said)
    plt.close("all")
    assert model.report_["candidates"][0]["broken"] is not None
