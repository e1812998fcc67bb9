"""What the page of the choice says holds."""

import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from mmcnb.estimators.choice import (
    CLEAR_AGREEMENT,
    CLEAR_CUT,
    CLEAR_VALLEY,
    FEW_ROWS,
    LEAST_AGREEMENT,
    NO_CUT,
)
from mmcnb.features.valley import NEIGHBOURS
from mmcnb.least_squares.cluster_numbers import SAMPLE_ROWS, VALLEY_WEIGHT

PAGE = (Path(__file__).parent.parent / "docs/choice.md").read_text()


def test_its_examples_run_and_find_the_blobs():
    said: dict = {}
    codes = re.findall(r"^```python\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    exec(codes[0], said)
    model = said["model"]
    assert (model.n_clusters_, model.kernel_, model.loss_) == (7, "graph", "squared")
    assert model.report_["trust"]["level"] == "high"
    np.testing.assert_array_equal(model.confidence(said["X"][:5]), np.ones(5))
    for code in codes[1:]:
        exec(code, said)
    plt.close("all")
    assert model.report_["candidates"][0]["broken"] is not None


def test_its_numbers_are_those_of_the_code():
    assert f"at most {CLEAR_CUT} and `agreement` at least {LEAST_AGREEMENT}" in PAGE
    assert f"or where `relative_cut` is at most {NO_CUT}" in PAGE
    assert f"the valley is below {CLEAR_VALLEY}" in PAGE
    assert f"the agreement is below {CLEAR_AGREEMENT}" in PAGE
    assert f"fewer than {FEW_ROWS} rows differ" in PAGE
    assert NEIGHBOURS == 10
    assert f"are tried on {SAMPLE_ROWS:,} rows" in PAGE
    assert f"agreement plus {VALLEY_WEIGHT} times the valley" in PAGE
