"""Write the models that each release leaves for later ones: ``python tests/data/models/write.py``.

They go to a folder named after the version: a model of each class, the labels and
decisions of some rows, and the folder of a finished checkpoint, of no processor. `rows`
makes the same numbers on any machine. The models whose names end with "-graph" are of
the kernel that 0.2 alone had.
"""

import json
import tempfile
import warnings
from pathlib import Path

import numpy as np

import mmcnb
from mmcnb.stores import create_dense_store

SMALL = {"random_state": 0}
MODELS = {
    "CPMMC": {},
    "CrammerSingerMMC": {"n_clusters": 3, "n_init": 1, "n_landmarks": 8, "gamma": 0.02},
    "EvolutionaryMMC": {"n_landmarks": 8, "gamma": 0.02, "n_generations": 5},
    "KernelCPMMC": {"n_init": 1, "gamma": 0.02},
    "KernelKMeans": {"n_clusters": 3, "n_init": 1, "n_landmarks": 8, "gamma": 0.02},
    "MaximumMarginClustering": {"n_clusters": 3},
    "MultipleKernelClustering": {
        "n_clusters": 2,
        "n_init": 1,
        "kernels": ["linear", "rbf"],
    },
    "SparseKernelMMC": {
        "n_init": 1,
        "n_landmarks": 8,
        "gamma": 0.02,
        "scale": "standard",
    },
    "SupportClusterMachine": {"gamma": 0.02},
    "UnsupervisedRLS": {"n_clusters": 3, "n_init": 1, "n_landmarks": 8, "gamma": 0.02},
}
# The second argument of `fit`, for the estimators that need it.
CLASSES = {"SupportClusterMachine": (np.arange(60) % 3 == 0,)}


def rows(count: int = 60) -> np.ndarray:
    """Whole numbers in three groups."""
    number = np.arange(count)
    spread = (number[:, None] * np.array([7, 11, 13]) + np.array([0, 3, 5])) % 9
    return (spread + 20 * np.eye(3)[number % 3]).astype(np.float64)


def main() -> None:
    """Write all models."""
    warnings.simplefilter("ignore")
    folder = Path(__file__).parent / mmcnb.__version__
    X = rows()
    expected = {}
    folder.mkdir()
    for name, parameters in MODELS.items():
        cls = getattr(mmcnb, name)
        model = cls(
            **{
                key: value
                for key, value in (SMALL | parameters).items()
                if key in cls().get_params()
            }
        )
        model.fit(X, *CLASSES.get(name, ()))
        model.save(folder / f"{name}.model")
        labels = model.predict(X)
        decisions = np.round(model.decision_function(X), 9)
        expected[name] = {"labels": labels.tolist(), "decisions": decisions.tolist()}
    (folder / "expected.json").write_text(json.dumps(expected) + "\n")
    with tempfile.TemporaryDirectory() as aside:
        with create_dense_store(f"{aside}/rows.zarr", 3) as writer:
            writer.append(X)
        mmcnb.CPMMC(random_state=0, checkpoint=folder / "checkpoint").fit(
            f"{aside}/rows.zarr"
        )
    (folder / "checkpoint" / "lock").unlink()
    run = folder / "checkpoint" / "run.json"
    document = json.loads(run.read_text())
    document["identity"]["the processor"] = "none"
    run.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
