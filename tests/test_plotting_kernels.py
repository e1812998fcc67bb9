"""The weights of kernels as bars, and the history of a fit of several kernels."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans

from mmcnb.errors import InputError
from mmcnb.plotting import HistoryDisplay, KernelWeightsDisplay


@pytest.fixture(autouse=True)
def _close_figures():
    from matplotlib import pyplot as plt

    yield
    plt.close("all")


class MultipleKernelMixin:
    """What a fit of several kernels leaves, without the fit."""

    def __init__(self, weights):
        self.kernel_weights_ = np.asarray(weights) / np.linalg.norm(weights)
        self.kernel_names_ = [f"rbf, gamma={2.0**k:g}, columns 0-15" for k in range(len(weights))]
        self.history_ = pd.DataFrame(
            {
                "stage": ["sample", "all rows", "all rows", "all rows"],
                "start": [0, np.nan, np.nan, np.nan],
                "C": 1.0,
                "round": [0, 0, 0, 1],
                "objective": [0.2, 0.4, 0.7, 0.6],
                "primal": [0.9, 0.8, 0.72, 0.61],
                "violation": [0.5, 0.3, 0.1, 0.01],
                "planes": [1, 1, 2, 2],
                "changed": [np.nan, 4, 2, 0],
                **{f"weight_{k}": weight for k, weight in enumerate(self.kernel_weights_)},
            }
        )


def names(display):
    return [label.get_text() for label in display.ax_.get_yticklabels()]


@pytest.mark.parametrize("kernels", [1, 3, 20])
def test_each_kernel_has_its_bar_name_and_figure(kernels):
    estimator = MultipleKernelMixin(np.arange(kernels) + 1.0)
    display = KernelWeightsDisplay.from_estimator(estimator)
    np.testing.assert_array_equal([bar.get_width() for bar in display.bars_], estimator.kernel_weights_)
    assert names(display) == estimator.kernel_names_
    assert [text.get_text() for text in display.ax_.texts] == [f"{w:.2f}" for w in estimator.kernel_weights_]
    assert len({bar.get_facecolor() for bar in display.bars_}) == 1
    assert display.ax_.figure is display.figure_


@pytest.mark.parametrize("kernels", [1, 3, 20])
def test_nothing_that_is_written_overlaps_or_leaves_the_figure(kernels):
    display = KernelWeightsDisplay.from_estimator(MultipleKernelMixin(np.arange(kernels) + 1.0))
    figure, ax = display.figure_, display.ax_
    figure.canvas.draw()
    whole = figure.bbox
    for texts in (ax.get_yticklabels(), ax.texts):
        boxes = [text.get_window_extent() for text in texts]
        assert all(whole.x0 <= box.x0 and box.x1 <= whole.x1 for box in boxes)
        assert all(upper.y0 >= lower.y1 for upper, lower in pairwise(boxes))


def test_the_first_kernel_is_on_top_and_equal_names_keep_their_bars():
    from matplotlib import pyplot as plt

    ax = plt.subplots()[1]
    for _ in range(2):  # drawn anew on the same axes, the order stays
        display = KernelWeightsDisplay([0.6, 0.8], ["linear", "linear"]).plot(ax, color="red")
    first, second = (bar.get_window_extent() for bar in display.bars_)
    assert first.y0 > second.y1
    assert names(display) == ["linear", "linear"]
    assert display.ax_ is ax
    assert display.bars_[0].get_facecolor() == (1.0, 0.0, 0.0, 1.0)


def test_a_kernel_without_weight_keeps_its_place():
    display = KernelWeightsDisplay([0.0, 1.0, 0.0], ["linear", "poly", "rbf"]).plot()
    assert [bar.get_width() for bar in display.bars_] == [0, 1, 0]
    assert names(display) == ["linear", "poly", "rbf"]


@pytest.mark.parametrize("estimator", [KMeans(2), object()])
def test_an_estimator_without_weights_is_refused(estimator):
    with pytest.raises(InputError, match=f"^{type(estimator).__name__} has no kernel_weights_; fit"):
        KernelWeightsDisplay.from_estimator(estimator)


@pytest.mark.parametrize(
    ("weights", "given"), [([1.0], ["linear", "rbf"]), ([], []), ([[0.6, 0.8]], ["linear", "rbf"])]
)
def test_weights_and_names_must_fit(weights, given):
    with pytest.raises(InputError, match="one name a weight"):
        KernelWeightsDisplay(weights, given)


def test_the_history_of_several_kernels_shows_objective_and_violation():
    history = MultipleKernelMixin([1.0, 2.0]).history_
    display = HistoryDisplay(history).plot()
    for ax, name in zip(display.axes_, ("objective", "violation"), strict=True):
        (line,) = ax.get_lines()
        np.testing.assert_array_equal(line.get_ydata(), history[name].iloc[1:])
