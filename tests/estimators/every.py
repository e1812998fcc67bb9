"""Every clusterer of the public namespace, so that laws of all hold for one that comes."""

from sklearn.base import ClusterMixin

import mmcnb

NAMES = [
    name
    for name in mmcnb.__all__
    if hasattr(getattr(mmcnb, name), "fit")
    and issubclass(getattr(mmcnb, name), ClusterMixin)
]


def make_any(name, **parameters):
    """An estimator by its name, with a fixed seed and those of the parameters that it has."""
    estimator = getattr(mmcnb, name)
    known = estimator().get_params()
    given = {"random_state": 0} | parameters
    return estimator(**{key: value for key, value in given.items() if key in known})
