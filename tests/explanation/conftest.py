"""What the tests of explanations share."""

import warnings

import pandas as pd

import mmcnb


def explained(X, y, source=None):
    """The explanation of given labels, by a model of some of the rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = mmcnb.KernelKMeans(2, kernel="linear", n_init=1, random_state=0)
        rows = X[:2000] if X.shape[0] > 2000 else X
        keep = {"columns": "all"} if isinstance(X, pd.DataFrame) else {}
        return model.fit(rows, **keep).explain(X if source is None else source, y)
