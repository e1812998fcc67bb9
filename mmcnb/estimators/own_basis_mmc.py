"""Sparse kernel maximum margin clustering with the basis of its paper: one vector per cutting plane."""

from collections.abc import Mapping
from typing import ClassVar

from mmcnb._constraints import Constraint
from mmcnb.engine.plan import FitNeeds
from mmcnb.engine.session import FitResult, FitSession
from mmcnb.estimators.base import MARGIN_FITTED, StreamedClusterer, estimator
from mmcnb.estimators.parameters import GAMMA, OPTIONAL_COUNT, SAMPLE_SIZE, TWO_CLUSTERS, search_parameters
from mmcnb.hinge.growing import OwnBasisWorkingSet
from mmcnb.hinge.landmarks import candidate_kernels, fit_on_landmarks, needs_of_landmarks
from mmcnb.hinge.sample_search import search_config


@estimator(kw_only=True)
class OwnBasisMMC(StreamedClusterer):
    """Sparse kernel maximum margin clustering, each cutting plane on a basis vector of its own.

    `mmcnb.SparseKernelMMC` on landmarks is faster and more accurate. This form is for comparison with the
    paper. It finds one basis vector for each cutting plane, as a fixed point, and stores one kernel column
    per plane on the sample. On further rows its basis serves as landmarks.

    Parameters
    ----------
    C : float, default=10.0
        Final weight of the slack, above 1.
    gamma : float or {"auto", "mean", "median", "scale"}, default="auto"
        Gamma of the Gaussian kernel, as in `mmcnb.SparseKernelMMC`.
    threshold : {"adaptive", "fixed"}, default="adaptive"
        "adaptive" makes the margin's threshold rho a variable (SKMMC); "fixed" sets it to 1 (SKMMCv2).
    n_landmarks : int or None, default=None
        Number of landmarks, used by the starts alone; None is min(200, half the sample).
    continuation : bool, default=True
        Raise C from near 1; False is the form of the papers, directly at C.
    init : {"mixed", "random", "k-means"}, default="mixed"
        Kind of starts; see `mmcnb.SparseKernelMMC`.
    n_init : int, default=6
        Number of starts.
    sample_size : int or None, default=None
        Rows of the sample; None is 2,000.
    balance : float, default=0.0
        Bound l/n of the mean decision value, in units of rho.
    min_share : float, default=0.1
        Least share of a cluster, as a fraction of one half.
    scale : {None, "standard"}, default=None
        "standard" scales the columns block by block (sparse columns are not centred).
    eta : float, default=0.01
        Tolerance of the cutting-plane loop, which sets the number of basis vectors.
    max_rounds : int, default=30
        Most rounds over labels at one C.
    {runtime}

    Attributes
    ----------
    labels_, objective_, rho_, gamma_, converged_, history_, report_, n_features_in_, feature_names_in_
        As in `mmcnb.SparseKernelMMC`.

    References
    ----------
    J. Wu and X.-L. Zhang, Sparse kernel maximum margin clustering, Alg. 3 and 4.

    Examples
    --------
    >>> from mmcnb.baselines import OwnBasisMMC
    >>> from sklearn.datasets import make_blobs
    >>> X, y = make_blobs(100, centers=[[0, 0], [9, 9]], random_state=0)
    >>> model = OwnBasisMMC(gamma="median", n_init=1, random_state=0).fit(X)
    >>> bool((model.labels_ == (y != y[0])).all())
    True
    """

    C: float = 10.0
    gamma: float | str = "auto"
    threshold: str = "adaptive"
    n_landmarks: int | None = None
    continuation: bool = True
    init: str = "mixed"
    n_init: int = 6
    sample_size: int | None = None
    balance: float = 0.0
    min_share: float = 0.1
    scale: str | None = None
    eta: float = 0.01
    max_rounds: int = 30

    kernel: ClassVar[str] = "rbf"
    degree: ClassVar[int] = 3
    coef0: ClassVar[float] = 1.0
    constraints: ClassVar[Mapping[str, Constraint]] = {
        **TWO_CLUSTERS,
        "gamma": GAMMA,
        "n_landmarks": OPTIONAL_COUNT,
        "sample_size": SAMPLE_SIZE,
    }
    fitted_names: ClassVar[tuple[str, ...]] = MARGIN_FITTED

    def _needs(self, n_samples: int) -> FitNeeds:
        return needs_of_landmarks(n_samples, self.sample_size, self.n_landmarks, growing=True)

    def _fit(self, session: FitSession) -> FitResult:
        config = search_config(session, **search_parameters(self))
        kernels = candidate_kernels("rbf", self.gamma, session.sample, session.sample_weights)
        return fit_on_landmarks(session, config, kernels, self.n_landmarks, growing=OwnBasisWorkingSet)
