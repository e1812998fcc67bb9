"""Confidence beside the fate of rows when the fit is repeated on new ones."""

from typing import Any

import numpy as np
import pandas as pd

import mmcnb
from benchmarks.methods import FRONT_DOOR
from benchmarks.protocol import fit
from benchmarks.run import Options, Run, Runs, frame_of_runs
from benchmarks.studies._choice_problems import PAIRS, Problem, of_scale, problems, rows_of
from benchmarks.tables import Result

REFITS, NEW_FITS = 4, 2  # halves of the sample; and fits to new rows, with which each of them is compared
BINS = np.linspace(0, 1, 11)


def cases() -> list[Problem]:
    """Some pairs and all other problems of at least 600 rows.

    Examples
    --------
    >>> from benchmarks.studies._choice_confidence import cases
    >>> len(cases()) >= 60
    True
    """
    known = [one for one in problems() if one.rows >= 600]
    return [one for one in known if one.domain == PAIRS][::5] + [one for one in known if one.domain != PAIRS]


@frame_of_runs
def grid(options: Options) -> Runs:
    """Each problem once, the tuning half first."""
    for problem in of_scale(options, cases(), ("optdigits 4 even", "two-moons")):
        yield Run(problem.name, FRONT_DOOR, 0, settings={"problem": list(problem), "rows": options.rows})


def compute(run: Run) -> dict[str, Any]:
    """Rows of each tenth of the confidence, and how many of them new fits kept."""
    (problem,) = (one for one in cases() if one.name == run.dataset)
    data = rows_of(problem, run.settings["rows"])
    k, parts = int(data.y.max()) + 1, NEW_FITS + 2
    rows = np.asarray(data.X)
    model = _fitted(k, rows[::parts], run.seed, REFITS)
    new = rows[parts - 1 :: parts]
    labels, said = model.predict(new), model.confidence(new)
    kept = np.mean(
        [_kept(_fitted(k, rows[i::parts], run.seed, 0).predict(new), labels, k) for i in range(1, parts - 1)],
        axis=0,
    )
    place = np.clip(np.digitize(said, BINS) - 1, 0, 9)
    sums = {"rows": None, "said": said, "kept": kept}
    return {
        **{
            f"{name} {i}": float(np.bincount(place, values, 10)[i])
            for name, values in sums.items()
            for i in range(10)
        },
        "trust": model.report_["trust"]["level"],
    }


def _fitted(k: int, rows: np.ndarray, seed: int, n_refits: int) -> Any:
    return fit(mmcnb.MaximumMarginClustering(k, n_refits=n_refits, random_state=seed), rows)


def _kept(labels: np.ndarray, others: np.ndarray, k: int) -> np.ndarray:
    """Whether rows have the same cluster in both, under the best matching."""
    from scipy.optimize import linear_sum_assignment

    counts = np.bincount(labels * k + others, minlength=k * k).reshape(k, k)
    return np.asarray(linear_sum_assignment(counts, maximize=True)[1][labels] == others)


def tables(frame: pd.DataFrame) -> Result:
    """Calibration error: distance of the confidence from the share kept, over tenths of it and by problem."""
    domains = {one.name: (one.half, one.domain) for one in problems()}
    whole = frame[frame["status"] == "ok"]
    whole = whole.assign(
        half=whole["dataset"].map(lambda name: domains[name][0]),
        domain=whole["dataset"].map(lambda name: domains[name][1]),
    )
    rows = []
    for (half, domain), part in pd.concat([whole, whole.assign(domain="all")]).groupby(["half", "domain"]):
        counts, said, kept = (
            part[[f"{name} {i}" for i in range(10)]].to_numpy(float) for name in ("rows", "said", "kept")
        )
        shares = counts / counts.sum(axis=1, keepdims=True) / len(part)  # problems count the same
        gap = (said - kept) / np.maximum(counts, 1)
        rows.append(
            {
                "half": half,
                "domain": domain,
                "problems": len(part),
                "said": float((said.sum(axis=1) / counts.sum(axis=1)).mean()),
                "kept": float((kept.sum(axis=1) / counts.sum(axis=1)).mean()),
                "calibration error": float(np.abs((shares * gap).sum(axis=0)).sum()),
                "mean error of a problem": float(
                    np.abs((said - kept).sum(axis=1) / counts.sum(axis=1)).mean()
                ),
            }
        )
    return Result({"choice-confidence": pd.DataFrame(rows)})
