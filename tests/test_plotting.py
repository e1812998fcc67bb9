"""The displays draw what they are given and keep what they drew on."""

import numpy as np
import pandas as pd
import pytest

from mmcnb._errors import InputError
from mmcnb.plotting import ClusterDisplay, HistoryDisplay
from mmcnb.synthetic import make_block


@pytest.fixture(autouse=True)
def _close_figures():
    from matplotlib import pyplot as plt

    yield
    plt.close("all")


class Halves:
    """An estimator that labels by the sign of the first feature."""

    history_ = pd.DataFrame(
        {
            "stage": ["sample", "all rows", "all rows"],
            "objective": [3.0, 2.0, 1.5],
            "violation": [1.0, 0.5, 0.01],
        }
    )

    def predict(self, X):
        return (X[:, 0] > 0).astype(int)


def test_rows_are_drawn_in_the_columns_asked_for_and_coloured_by_label():
    X, _ = make_block("rings", 0, 200, 4)
    display = ClusterDisplay.from_estimator(Halves(), X, features=(2, 1))
    np.testing.assert_allclose(display.scatter_.get_offsets(), X[:, [2, 1]])
    np.testing.assert_array_equal(display.scatter_.get_array(), X[:, 0] > 0)
    assert display.ax_.figure is display.figure_


@pytest.mark.parametrize(
    ("stages", "shown"), [(["sample", "all rows", "all rows"], [1, 2]), (["sample"] * 3, [0, 1, 2])]
)
def test_history_lines_are_the_passes_over_all_rows_or_else_over_the_sample(stages, shown):
    history = Halves.history_.assign(stage=stages)
    display = HistoryDisplay(history).plot()
    for ax, name in zip(display.axes_, ("objective", "violation"), strict=True):
        (line,) = ax.get_lines()
        np.testing.assert_array_equal(line.get_ydata(), history[name].iloc[shown])
        np.testing.assert_array_equal(line.get_xdata(), np.arange(len(shown)) + 1)


def test_axes_and_style_of_the_caller_are_used():
    from matplotlib import pyplot as plt

    ax = plt.subplots()[1]
    assert HistoryDisplay.from_estimator(Halves(), ax=ax, linewidth=3).axes_[0] is ax
    assert ax.get_lines()[0].get_linewidth() == 3
    X, y = make_block("moons", 0, 50, 2)
    display = ClusterDisplay.from_predictions(X, y, ax=ax, s=9)
    assert display.ax_ is ax
    assert display.scatter_.get_sizes() == [9]


@pytest.mark.parametrize(
    ("labels", "features", "sentence"),
    [(np.zeros(3), (0, 1), "one label a row"), (np.zeros(5), (0, 2), "not columns of X")],
)
def test_rows_and_labels_must_fit(labels, features, sentence):
    with pytest.raises(InputError, match=sentence):
        ClusterDisplay.from_predictions(np.zeros((5, 2)), labels, features=features)
