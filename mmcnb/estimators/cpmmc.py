"""Linear cutting-plane maximum margin clustering."""

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from mmcnb.engine.passes import DrawnSample
from mmcnb.engine.run import Engine
from mmcnb.estimators.margin import MarginClusterer
from mmcnb.features.bandwidth import mean_squared_distance
from mmcnb.hinge.sample_search import KernelFeatures, linear_features
from mmcnb.samples import open_samples


class CPMMC(MarginClusterer):
    """Linear cutting-plane maximum margin clustering, on the columns themselves.

    Parameters
    ----------
    C : float, default=10.0
        Final weight of the slack; above 1.
    threshold : {"adaptive", "fixed"}, default="adaptive"
        Adaptive (Alg. 1) or fixed at 1 (Wang, Zhao and Zhang).
    continuation : bool, default=True
        Raise C from near 1; False is the papers' form.
    init : {"mixed", "random", "k-means"}, default="mixed"
        Kind of starts, tried on a sample; see `SparseKernelMMC`.
    n_init : int, default=6
        Number of starts.
    sample_size : int or None, default=None
        Rows of the sample; None is 2,000.
    balance : float, default=0.0
        l/n: bound of the mean decision value in units of rho.
    min_share : float, default=0.1
        Least share of a cluster, as a fraction of one half.
    scale : {None, "standard"}, default=None
        "standard" scales the columns inside the stream.
    eta : float, default=0.01
        Tolerance of the cutting-plane loop.
    max_rounds : int, default=30
        Rounds over labels at one C at most.
    memory_limit : str, int or None, default=None
        Resident memory of the process, such as "512MiB".
    n_jobs : int or None, default=None
        Threads; None and -1 are all cores.
    random_state : int, RandomState or None, default=None
        Seed.
    verbose : int, default=0
        1 shows a progress bar on a terminal.
    checkpoint : path or None, default=None
        Folder in which the fit keeps how far it has come; a fit of the same rows, parameters and seed
        goes on from there.
    engine : None, str or dask.distributed.Client, default=None
        Who runs the passes over the rows: None is threads of this process, or what `mmcnb.config` says; a
        client, or the address of its scheduler, is a Dask cluster.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,), int32
        Cluster of each row.
    coef_ : ndarray of shape (n_features,)
        Normal vector of the boundary, on the scaled columns.
    intercept_ : float
        Its offset.
    objective_, rho_, converged_, history_, report_, n_features_in_
        As in `SparseKernelMMC`.

    References
    ----------
    J. Wu and X.-L. Zhang, Sparse kernel maximum margin clustering, Alg. 1.
    F. Wang, B. Zhao and C. S. Zhang, Linear time maximum margin clustering.

    Examples
    --------
    >>> import mmcnb
    >>> from sklearn.datasets import make_blobs
    >>> X, y = make_blobs(300, centers=[[0, 0], [8, 8]], random_state=0)
    >>> model = mmcnb.CPMMC(random_state=0).fit(X)
    >>> bool((model.labels_ == (y != y[0])).all())
    True
    """

    def __init__(
        self,
        C: float = 10.0,
        threshold: str = "adaptive",
        continuation: bool = True,
        init: str = "mixed",
        n_init: int = 6,
        sample_size: int | None = None,
        balance: float = 0.0,
        min_share: float = 0.1,
        scale: str | None = None,
        eta: float = 0.01,
        max_rounds: int = 30,
        memory_limit: str | int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        checkpoint: str | os.PathLike[str] | None = None,
        engine: Any = None,
    ) -> None:
        self.C = C
        self.threshold = threshold
        self.continuation = continuation
        self.init = init
        self.n_init = n_init
        self.sample_size = sample_size
        self.balance = balance
        self.min_share = min_share
        self.scale = scale
        self.eta = eta
        self.max_rounds = max_rounds
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint
        self.engine = engine

    @property
    def coef_(self) -> np.ndarray:
        """Normal vector of the boundary, on the scaled columns."""
        return self.model_.rule.coef

    @property
    def intercept_(self) -> float:
        """Offset of the boundary."""
        return float(self.model_.rule.offset)

    def _candidates(
        self, engine: Engine, found: DrawnSample, weights: np.ndarray | None, random_state: Any
    ) -> list[Callable[[], KernelFeatures]]:
        mean_squared_distance(found.sample, weights)  # refuses rows that are all equal
        return [partial(linear_features, engine, open_samples(found.sample), weights)]
