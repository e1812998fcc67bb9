"""The small UCI sets of SKMMC's Tab. I to III: errors and CPU times of seven methods with both protocols.

``python -m benchmarks small [--quick] [--seeds N] [--part NAME ...]`` has three
sections. "tables" fits k-means, normalised cut (scikit-learn's `SpectralClustering`),
IterSVR, CPMMC (linear), LG-MMC, SKMMC and SKMMCv2 (SKMMC with the threshold fixed at 1,
App. B) on raw columns. Data sets without files are left out. Above 700 rows, LG-MMC is
fitted only with sigma = 0.5; above 1,000 rows, only with a linear kernel and three
values of C, in the paper's protocol. Iterations are rounds of CCCP over all C and
starts of the selected run, or the rounds in which IterSVR and LG-MMC label the rows
again.

label-free  as a user fits: defaults, k-means with ten starts, the cut of the graph of
            ten neighbours; means over three seeds
paper       the grids of the paper, from which the smallest balanced error is selected
            with the classes: sigma is 0.25, 0.5, 1, 2 and 4 times the root mean squared
            distance of two rows, l is 0, 1, ..., 20, C = 10, eta = 0.01. k-means and
            IterSVR are means over 20 runs, as in the paper; IterSVR and LG-MMC are told
            how unequal the classes are. CPMMC, SKMMC and SKMMCv2 run at each point once
            from random labels and once from four mixed starts, of which the start with
            the best |w| is kept; CPMMC has C = 10, as published, the others have the
            continuation in C. On up to 500 rows, SKMMC also runs with all rows as its
            basis

A selection with the classes finds a low error even in data without clusters: "coin
flips" is the smallest error of as many random labellings as SKMMC has runs on a data
set (mean of 20 such selections). A row whose error is not clearly below this value
measures selection, and is marked accordingly. ``--quick`` uses four data sets, three
widths, two values of l and one seed.
"""

import time
from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import methods, protocol
from benchmarks.methods import CPMMC, CUT, KMEANS, LGMMC, SKMMC, SKMMC2, SVR
from benchmarks.protocol import ERROR, LABEL_FREE, PAPER, PAPER_WIDTHS, Data
from benchmarks.published import SKMMC as SKMMC_PAPER
from benchmarks.published import figure, published
from benchmarks.run import OK, Options, Run, Runs, Section, frame_of_runs
from benchmarks.studies._skmmc import AS_PRINTED, LINEAR_LGMMC, OWN_BASIS, rounds_of
from benchmarks.tables import Goal, Result, best, goals_of, over_seeds
from mmcnb.metrics import balanced_clustering_error

METHODS = (KMEANS, CUT, SVR, CPMMC, LGMMC, SKMMC, SKMMC2)
SETS = tuple(
    dict.fromkeys(
        published().query("table == 'Tab. II' and paper == @SKMMC_PAPER")["dataset"]
    )
)
QUICK_SETS = ("echocardiogram", "spectf", "ionosphere", "house-votes")
SMOKE_SETS = ("ionosphere",)
# values of l
BOUNDS = tuple(range(21))
QUICK_BOUNDS = (0, 20)
SMOKE_BOUNDS = (0,)
# Number of runs at each point of the paper's grid; other methods have 1.
RUNS = {KMEANS: 20, SVR: 20}
FREE_RUNS = {LGMMC: 1}  # it is deterministic; other methods have 3 runs
# With a kernel matrix; for more rows, LG-MMC is linear and has no "order".
MOST_LGMMC_ROWS = 1000
MOST_SEARCHED_ROWS = 700  # LG-MMC at all widths; for more rows, one width takes minutes
MOST_EXACT_ROWS = 500
CHOICES = 20  # repetitions of the selection from coin flips
COIN_FLIP = "coin flip"
MIXED = "mixed"
EXACT = "mixed, exact"
STARTS: dict[str, dict[str, Any]] = {
    COIN_FLIP: {"init": "random", "n_init": 1},
    MIXED: {"init": "mixed", "n_init": 4},
    # uses all rows, if there are not too many
    EXACT: {
        "init": "mixed",
        "n_init": 4,
        "n_landmarks": MOST_EXACT_ROWS,
    },
}
# Values of l with the paper's basis, where a fit takes seconds.
OWN_BASIS_BOUNDS = (0, 10, 20)
ORDER = "SVM, order of the file"
ORDER_ROUNDS = 30
C = 10.0
LEAST_BALANCE = 0.03  # of IterSVR and LG-MMC, for which it bounds the labels
FACTS = "facts"
COINS = "coin flips"
CPU = "cpu_seconds"
ROUNDS = "rounds"
PRINTED = {
    "n": "n_samples",
    "d": "n_features",
    "imbalance": "imbalance",
    "sparsity": "sparsity",
}
NEEDED = (ERROR, "mean_error", CPU, "starts", "imbalance", "sparsity")
SELECTED = (  # in addition to the coin flips
    ("SKMMC", PAPER, SKMMC),
    ("SKMMCv2", PAPER, SKMMC2),
    ("label-free SKMMC", LABEL_FREE, SKMMC),
    ("label-free SKMMCv2", LABEL_FREE, SKMMC2),
    ("k-means", LABEL_FREE, KMEANS),
)
# Goals for the errors: selected with the classes from coin flips, selected from the
# best starts, and label-free.
CHOSEN = {
    "echocardiogram": 0.16,
    "spectf": 0.225,
    "ionosphere": 0.23,
    "house-votes": 0.12,
    "breast": 0.03,
}
CHOSEN |= {"waveform-1v2": 0.06}
BEST_STARTS = {"spectf": 0.205, "ionosphere": 0.2}
FREE = {"house-votes": 0.12, "breast": 0.03, "waveform-1v2": 0.06, "ionosphere": 0.23}


# -- runs ------------------------------------------------------------------------------


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield all methods on each data set with both protocols, coin flips, and the facts."""
    for name in options.pick(SETS, QUICK_SETS, SMOKE_SETS):
        data = {"rows": options.rows_of(name)}
        yield Run(name, "", 0, part=FACTS, settings=data)
        for method in METHODS:
            if not (method == LGMMC and _rows(name) > MOST_LGMMC_ROWS):
                for seed in options.repeats(FREE_RUNS.get(method, 3)):
                    yield Run(name, method, seed, settings=data)
            points = points_of(name, method, options)
            seeds = options.repeats(RUNS.get(method, 1))
            for point, seed in product(points, seeds):
                yield Run(
                    name,
                    method,
                    seed,
                    parameters=point,
                    protocol=PAPER,
                    settings=data | {"bounds": bounds_of(method, options)},
                )
        n_points = len(points_of(name, SKMMC, options))
        flips = n_points * len(bounds_of(SKMMC, options))
        for seed in range(CHOICES):
            yield Run(
                name,
                COINS,
                seed,
                parameters={"flips": flips},
                protocol=PAPER,
                settings=data,
            )


def _rows(name: str) -> float:
    return figure(SKMMC_PAPER, name, "", "n_samples", "Tab. I")


def points_of(name: str, method: str, options: Options) -> list[dict[str, Any]]:
    """Return the points of the paper's grid without l, over which each run searches."""
    if method == KMEANS:
        return [{}]
    n = _rows(name)
    if method == LGMMC and n > MOST_LGMMC_ROWS:
        return list(LINEAR_LGMMC)
    widths = options.pick(PAPER_WIDTHS, PAPER_WIDTHS[:3], PAPER_WIDTHS[1:3])
    if method == LGMMC and n > MOST_SEARCHED_ROWS:
        widths = (0.5,)
    points: list[dict[str, Any]] = [{"width": width} for width in widths]
    if method == CPMMC:
        points = [{}]
    if method not in (CPMMC, SKMMC, SKMMC2):
        return points
    starts = [COIN_FLIP, MIXED]
    if method == SKMMC and n <= MOST_EXACT_ROWS:
        starts.append(EXACT)
    return [point | {"starts": start} for point, start in product(points, starts)]


def bounds_of(method: str, options: Options) -> tuple[int, ...]:
    """Return the values of l to search; none for a method without l."""
    if method == OWN_BASIS:
        return options.pick(OWN_BASIS_BOUNDS, QUICK_BOUNDS, SMOKE_BOUNDS)
    if method not in (CPMMC, SKMMC, SKMMC2):
        return ()
    return options.pick(BOUNDS, QUICK_BOUNDS, SMOKE_BOUNDS)


def compute(run: Run) -> dict[str, Any]:
    """Describe a data set, flip coins, fit a method with its defaults, or search a point."""
    data = run.data
    facts = protocol.facts(data.X)
    if run.part == FACTS:
        facts["imbalance"] = float(imbalance_degree(data.y)) / 100
        facts["sparsity"] = float(sparsity(data.X)) / 100
        return facts
    if run.method == COINS:
        return facts | {ERROR: coin_flips(data.y, run.parameters["flips"], run.seed)}
    if run.protocol == LABEL_FREE:
        return facts | _scored(label_free(run.method, run.seed), data)
    return facts | searched(run, data)


def coin_flips(y: np.ndarray, flips: int, seed: int) -> float:
    """Return the smallest balanced error of a number of random labellings.

    This is the result of a selection with the classes that does not use the data.
    """
    random = np.random.default_rng(seed)
    errors = []
    for _ in range(flips):
        labels = random.integers(0, 2, len(y))
        errors.append(float(balanced_clustering_error(y, labels)))
    return min(errors)


def searched(run: Run, data: Data) -> dict[str, Any]:
    """Return the run with the smallest balanced error over the values of l.

    Each value has different starts.

    Returns
    -------
    dict
        The result of `clustering` for this run, ``found_l``, ``runs``, ``mean_error``
        over all runs, and means of the seconds.
    """
    bounds = list(run.settings["bounds"])
    fits = []
    for place, bound in enumerate(bounds or [0]):
        seed = run.seed * max(len(bounds), 1) + place
        model = as_published(run.method, data, seed, run.parameters, bound)
        measures = _scored(model, data)
        if bounds:
            measures["found_l"] = bound
        fits.append(measures)
    means = pd.DataFrame(fits)[["seconds", CPU, ERROR]].mean()
    means = means.rename({ERROR: "mean_error"})
    least = min(fits, key=lambda measures: measures[ERROR])
    return least | means.to_dict() | {"runs": len(fits)}


def label_free(method: str, seed: int) -> Any:
    """Return the estimator with its defaults, except for k-means' ten starts."""
    if method == KMEANS:
        return methods.estimator(method, random_state=seed, n_init=10)
    return methods.estimator(method, random_state=seed)


def as_published(
    method: str, data: Data, seed: int, point: Mapping[str, Any], bound: int = 0
) -> Any:
    """Return the unfitted estimator at a point of the paper's grid."""
    parameters = protocol.with_gamma(point, data.X)
    starts = parameters.pop("starts", None)
    if starts:
        parameters |= {"C": C, "balance": bound / len(data.y), **STARTS[starts]}
    if method == OWN_BASIS:
        parameters |= AS_PRINTED | {"C": C, "balance": bound / len(data.y)}
        return methods.estimator(SKMMC, random_state=seed, **parameters)
    if method == KMEANS:
        parameters |= {"init": "random", "n_init": 1}
    elif method == CPMMC:
        parameters |= {"threshold": "fixed", "continuation": False}
    elif method in (SVR, LGMMC):
        parameters["balance"] = max(LEAST_BALANCE, imbalance_degree(data.y) / 100)
    return methods.estimator(method, random_state=seed, **parameters)


def _scored(model: Any, data: Data) -> dict[str, Any]:
    """Fit, and return scores, wall and CPU seconds, and the rounds."""
    compiled = protocol.compile_seconds(data.X, model)
    worked = time.process_time()
    measures = protocol.timed(model, data.X)
    measures[CPU] = time.process_time() - worked
    measures["compile_seconds"] = compiled
    return protocol.clustering(data.y, model.labels_) | measures | rounds_of(model)


# -- the basis of the paper ------------------------------------------------------------


@frame_of_runs
def grid_of_basis(options: Options) -> Runs:
    """Yield SKMMC with the paper's basis at each width on each data set."""
    widths = options.pick(PAPER_WIDTHS, PAPER_WIDTHS[:3], PAPER_WIDTHS[1:3])
    bounds = bounds_of(OWN_BASIS, options)
    names = options.pick(SETS, QUICK_SETS, SMOKE_SETS)
    for name, width, seed in product(names, widths, options.repeats(1)):
        yield Run(
            name,
            OWN_BASIS,
            seed,
            parameters={"width": width},
            protocol=PAPER,
            settings={"rows": options.rows_of(name), "bounds": bounds},
        )


def tables_of_basis(frame: pd.DataFrame) -> Result:
    """Return the smallest error of each data set over the widths, beside that of SKMMC."""
    keys = ["dataset", "method"]
    settings = over_seeds(frame, [*keys, "parameters"], ERROR, CPU, ROUNDS)
    table = best(settings, keys, ERROR)
    table[f"published {ERROR}"] = [
        figure(SKMMC_PAPER, name, SKMMC, ERROR) for name in table["dataset"]
    ]
    return Result({"small-basis": table})


# -- starts by the order of the file ---------------------------------------------------


@frame_of_runs
def grid_of_order(options: Options) -> Runs:
    """Yield the SVM that starts from the order of the file, at each width."""
    widths = options.pick(PAPER_WIDTHS, PAPER_WIDTHS[:3], PAPER_WIDTHS[:2])
    names = options.pick(SETS, QUICK_SETS, SMOKE_SETS)
    names = tuple(name for name in names if _rows(name) <= MOST_LGMMC_ROWS)
    for name, width in product(names, widths):
        yield Run(
            name,
            ORDER,
            0,
            parameters={"width": width},
            protocol=PAPER,
            settings={"rows": options.rows_of(name)},
        )


def compute_order(run: Run) -> dict[str, Any]:
    """Label rows by an SVM trained on its own labels, starting from the halves of the file.

    Returns
    -------
    dict
        The result of `clustering` for the last labels, ``order_error`` of the first
        labels, and rounds.
    """
    from sklearn.svm import SVC

    data = run.data
    gamma = protocol.with_gamma({"width": run.parameters["width"]}, data.X)["gamma"]
    start = (np.arange(len(data.y)) >= len(data.y) // 2).astype(int)
    labels = start
    rounds = 0
    is_settled = False
    while rounds < ORDER_ROUNDS and not is_settled and np.unique(labels).size == 2:
        relabelled = SVC(C=C, gamma=gamma).fit(data.X, labels).predict(data.X)
        is_settled = np.array_equal(relabelled, labels)
        labels = relabelled
        rounds += 1
    order_error = float(balanced_clustering_error(data.y, start))
    counts = {"order_error": order_error, ROUNDS: rounds}
    return protocol.facts(data.X) | counts | protocol.clustering(data.y, labels)


def tables_of_order(frame: pd.DataFrame) -> Result:
    """Return the errors of the start and of the best width, beside the published error."""
    keys = ["dataset", "method"]
    settings = over_seeds(frame, [*keys, "parameters"], ERROR, "order_error", ROUNDS)
    table = best(settings, keys, ERROR)
    for method in (SKMMC, SKMMC2):
        table[f"published {method} error"] = [
            figure(SKMMC_PAPER, name, method, ERROR) for name in table["dataset"]
        ]
    columns = ["dataset", "n", "method", "parameters", "order_error", ERROR, ROUNDS]
    published_columns = [name for name in table if name.startswith("published")]
    return Result({"small-order": table[[*columns, *published_columns]]})


# -- tables ----------------------------------------------------------------------------


def tables(frame: pd.DataFrame) -> Result:
    """Return Tab. I to III, their measures, and goals.

    The iterations of Tab. III are in a separate table.
    """
    # Some columns are missing if all runs failed.
    frame = frame.reindex(columns=frame.columns.union(NEEDED, sort=False))
    frame = frame[frame["status"] == OK]
    is_facts = frame["part"] == FACTS
    figures = frame[~is_facts]
    keys = ["dataset", "protocol", "method"]
    settings = over_seeds(figures, [*keys, "parameters", "starts"], ERROR, CPU, ROUNDS)
    chosen = best(settings, keys, ERROR)
    iterations = wide_table(chosen, ROUNDS, "").dropna(axis=1, how="all")
    tables = {
        "small-settings": settings,
        "small-table1": facts_table(frame[is_facts]),
        "small-table2": wide_table(chosen, ERROR, " error"),
        "small-table3": wide_table(chosen, CPU, ""),
        "small-iterations": iterations,
        "small-selection": selection_table(figures, chosen),
    }
    return Result(tables, goals(settings), shown=tuple(tables)[1:])


def facts_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return Tab. I: the data sets as we load them, beside the published facts."""
    table = frame[["dataset", *PRINTED]].reset_index(drop=True)
    for ours, printed in PRINTED.items():
        table[f"published {ours}"] = [
            figure(SKMMC_PAPER, name, "", printed, "Tab. I")
            for name in table["dataset"]
        ]
    return table


def wide_table(chosen: pd.DataFrame, metric: str, suffix: str) -> pd.DataFrame:
    """Return Tab. II or III: rows for the published figures and both protocols.

    Each method has a column.

    Parameters
    ----------
    chosen : DataFrame
        One row for each data set, protocol and method.
    metric : str
        The metric to show.
    suffix : str
        Suffix of the names of the columns.

    Returns
    -------
    DataFrame
        dataset, protocol, and the methods; NaN if there is no figure.
    """
    ours = chosen.set_index(["dataset", "protocol", "method"])[metric]
    printed = {CPU: "seconds", ROUNDS: "iterations"}.get(metric, metric)
    rows = []
    for name in chosen["dataset"].unique():
        published_row = [
            figure(SKMMC_PAPER, name, method, printed) for method in METHODS
        ]
        rows.append([name, "published", *published_row])
        for by in (PAPER, LABEL_FREE):
            our_row = [ours.get((name, by, method)) for method in METHODS]
            rows.append([name, by, *our_row])
    titles = [f"{method}{suffix}" for method in METHODS]
    return pd.DataFrame(rows, columns=["dataset", "protocol", *titles])


def selection_table(figures: pd.DataFrame, chosen: pd.DataFrame) -> pd.DataFrame:
    """Return SKMMC's smallest error beside the smallest error of the same number of coin flips.

    Parameters
    ----------
    figures : DataFrame
        One row per run.
    chosen : DataFrame
        One row for each data set, protocol and method.

    Returns
    -------
    DataFrame
        The published error, our error with both protocols, the mean over all runs of
        SKMMC, k-means, the smallest error of the coin flips with its standard
        deviation, and "measures", which is "clustering" if our error is more than two
        standard deviations below that of the coin flips, and otherwise "selection".
    """
    coins = figures[figures["method"] == COINS].groupby("dataset", sort=False)
    runs = figures[(figures["method"] == SKMMC) & (figures["protocol"] == PAPER)]
    table = pd.DataFrame({"flips": coins["flips"].first()})
    table["published SKMMC error"] = [
        figure(SKMMC_PAPER, name, SKMMC, ERROR) for name in table.index
    ]
    errors = chosen.set_index(["protocol", "method", "dataset"])[ERROR]
    for title, by, method in SELECTED:
        table[f"{title} error"] = [
            errors.get((by, method, name)) for name in table.index
        ]
    mean_errors = runs.groupby("dataset")["mean_error"].mean()
    table.insert(3, "mean error of its runs", mean_errors)
    by_chance = coins[ERROR].mean()
    deviation = coins[ERROR].std()
    table["coin flips error"] = by_chance
    table["error's deviation"] = deviation
    is_clear = table["SKMMC error"] < by_chance - 2 * deviation
    table["measures"] = np.where(is_clear, "clustering", "selection")
    return table.reset_index()


def goals(settings: pd.DataFrame) -> list[Goal]:
    """Return goals for the smallest errors over the settings, to a tenth of a per cent.

    Some goals are for errors selected with the classes, others are label-free.
    """
    chosen = settings[(settings["method"] == SKMMC) & (settings["protocol"] == PAPER)]
    free = settings[settings["protocol"] == LABEL_FREE]
    asked = (
        (chosen[chosen["starts"] == COIN_FLIP], CHOSEN, "{}: classes known"),
        (chosen, BEST_STARTS, "{}: classes known, best starts"),
        (free[free["method"] == SKMMC], FREE, f"{{}}: {SKMMC}, label-free"),
        (free[free["method"] == SKMMC2], FREE, f"{{}}: {SKMMC2}, label-free"),
    )
    judged: list[Goal] = []
    for rows, bounds, title in asked:
        least = rows.groupby("dataset")[ERROR].min().round(3)
        judged += goals_of(least, bounds, title, "%")
    return judged


def imbalance_degree(y: np.ndarray) -> float:
    """Return the difference of the sizes of two classes, in per cent of the rows.

    Tab. I of the SKMMC paper has this figure.
    """
    counts = np.unique(y, return_counts=True)[1]
    return float(100 * abs(np.diff(counts)).sum() / counts.sum())


def sparsity(X: Any) -> float:
    """Return the percentage of non-zero values, as in Tab. I of the SKMMC paper."""
    from scipy.sparse import csr_array

    return float(100 * csr_array(X).count_nonzero() / np.prod(X.shape))


SECTIONS = {
    "tables": Section(grid, compute, tables),
    "basis": Section(grid_of_basis, compute, tables_of_basis),
    "order": Section(grid_of_order, compute_order, tables_of_order),
}
