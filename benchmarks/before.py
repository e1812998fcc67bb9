"""Compare the default with that of an earlier commit, whose checkout ``MMCNB_BEFORE`` names."""

import os
import pickle
import subprocess
import sys
from typing import Any, Self

import numpy as np

import mmcnb

BEFORE = "before"
VARIABLE = "MMCNB_BEFORE"
# Script of a process that runs the earlier code. It first fits a few rows, to compile
# the routines; these rows may have too few clusters, which is ignored.
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
    """Return the commit of the named checkout; print how to name one and return None if there is none.

    Raises
    ------
    InputError
        If the folder is not a checkout.
    """
    folder = os.environ.get(VARIABLE)
    if folder is None:
        print(
            f"benchmarks: {BEFORE} is left out: set {VARIABLE} to the folder of a checkout to include it.",
            file=sys.stderr,
        )
        return None
    words = ["git", "-C", folder, "describe", "--always", "--dirty"]
    told = subprocess.run(words, capture_output=True, text=True, check=False)
    if told.returncode:
        raise mmcnb.InputError(
            f"{VARIABLE}={folder!r} is not a checkout: {told.stderr.strip()!r}."
        )
    return told.stdout.strip()


class EarlierDefault:
    """`MaximumMarginClustering` of the code in a folder, which fits in a separate process.

    Parameters
    ----------
    n_clusters, random_state : int
        Parameters of the estimator.
    folder : path
        The checkout.

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        Cluster of each row.
    seconds_ : float
        Time of the fit, without the start of the process and compilation.

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
