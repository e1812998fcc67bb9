"""The default of an earlier commit beside today's: ``MMCNB_BEFORE`` names the folder of its checkout."""

import os
import pickle
import subprocess
import sys
from typing import Any, Self

import numpy as np

import mmcnb

BEFORE = "before"
VARIABLE = "MMCNB_BEFORE"
# A process of the other code. A fit of a few rows compiles, and may find that these
# have too few clusters.
PROCESS = """
import pickle, sys, time, warnings
import mmcnb

warnings.simplefilter("ignore")
if not mmcnb.__file__.startswith(sys.argv[1]):
    sys.exit("the folder has no mmcnb")
k, seed, X = pickle.load(sys.stdin.buffer)
model = mmcnb.MaximumMarginClustering(k, random_state=seed)
try:
    model.fit(X[:: -(-X.shape[0] // 400)])
except mmcnb.InputError:
    pass
started = time.perf_counter()
labels = model.fit(X).labels_
pickle.dump((labels, time.perf_counter() - started), sys.stdout.buffer)
"""


def commit_before() -> str | None:
    """The commit in the folder that is named, or None with a line that says how to name one.

    Raises
    ------
    InputError
        If the folder is no checkout.
    """
    folder = os.environ.get(VARIABLE)
    if folder is None:
        print(
            f"benchmarks: {BEFORE} is left out: {VARIABLE} names no folder of a checkout.",
            file=sys.stderr,
        )
        return None
    words = ["git", "-C", folder, "describe", "--always", "--dirty"]
    told = subprocess.run(words, capture_output=True, text=True, check=False)
    if told.returncode:
        raise mmcnb.InputError(
            f"{VARIABLE}={folder!r} is no checkout: {told.stderr.strip()!r}."
        )
    return told.stdout.strip()


class EarlierDefault:
    """`MaximumMarginClustering` of the code in the folder, which fits in a process of its own.

    Parameters
    ----------
    n_clusters, random_state : int
        Those of the estimator.
    folder : path
        The checkout.

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        Cluster of each row.
    seconds_ : float
        Those of the fit, without the process and its compilation.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.before import EarlierDefault
    >>> EarlierDefault(2, 0, ".").fit(np.array([[0.0], [0.1], [5.0], [5.1]])).labels_
    array([0, 0, 1, 1], dtype=int32)
    """

    def __init__(
        self, n_clusters: int, random_state: int, folder: str | os.PathLike[str]
    ) -> None:
        self.n_clusters, self.random_state, self.folder = (
            n_clusters,
            random_state,
            os.path.realpath(folder),
        )

    def fit(self, X: Any) -> Self:
        """Label the rows."""
        given = pickle.dumps((self.n_clusters, self.random_state, X))
        done = subprocess.run(
            [sys.executable, "-c", PROCESS, self.folder],
            input=given,
            capture_output=True,
            check=False,
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": self.folder},
        )
        if done.returncode:
            raise mmcnb.InputError(
                f"{BEFORE}: {done.stderr.decode().strip().splitlines()[-1]}"
            )
        found: tuple[np.ndarray, float] = pickle.loads(done.stdout)
        self.labels_, self.seconds_ = found
        return self
