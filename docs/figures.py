"""Figures of the user guide: python docs/figures.py [FOLDER] draws them anew, by default into docs."""

import sys
from pathlib import Path

from sklearn.datasets import load_digits

import mmcnb
from mmcnb.plotting import ClusterMapDisplay, ShakingDisplay
from mmcnb.synthetic import make_block

DPI = 100


def digits() -> ClusterMapDisplay:
    """Ten clusters of the handwritten digits that scikit-learn brings along."""
    X, _ = load_digits(return_X_y=True)
    model = mmcnb.UnsupervisedRLS(n_clusters=10, random_state=0).fit(X)
    return ClusterMapDisplay.from_estimator(model, X)


def shaking() -> ShakingDisplay:
    """Shaking on three Gaussians."""
    X, _ = make_block("blobs", 0, 300, 2, random_state=29, n_clusters=3)
    return ShakingDisplay.from_estimator(mmcnb.UnsupervisedRLS(n_clusters=3, random_state=0).fit(X), X)


def main(folder: Path) -> None:
    """Draw every figure.

    Parameters
    ----------
    folder : Path
        Where the figures are written.
    """
    for name, draw in {"digits": digits, "shaking": shaking}.items():
        draw().figure_.savefig(folder / f"{name}.png", dpi=DPI)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
