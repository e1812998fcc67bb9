"""Evolution of labels: error beside the published one, local search and k-means; time against rows.

``python -m benchmarks evolutionary [--quick] [--seeds N] [--part NAME ...]`` has six
sections:

tables  Tables 1 and 2 of Gieseke et al. on four pairs of digits, ionosphere, A and B of
        letter, two classes of satellite and five pairs of MNIST. The label-free methods
        are `EvolutionaryMMC` (EvoMMC), the same with landmarks (FastEvoMMC),
        `UnsupervisedRLS` ("mixed shaking") and k-means with ten starts. The paper's
        protocol uses the classes. It has a grid of three bandwidths (sigma = 1, 3, 5
        times the norm of the columns' ranges, gamma = 1/sigma²) and three ridges (alpha
        = 1/2n, 1/200n, 1/1000n). The kernel is not centred, the balance is bounded by
        the sizes of the classes, and the run with the smallest error of ten counts.
        EvoMMC has ten parents and offspring, FastEvoMMC one, and n/10 landmarks (MNIST:
        n/100). As in the paper, EvoMMC is fitted to 1,000 rows of each MNIST pair (here
        three runs and one seed). The other columns of Table 1 have the same bandwidths
        and balance: IterSVR at three C, the semidefinite programs MMC and GMMC (up to
        361 rows) at C = 1 and one more bandwidth, linear CPMMC at three C, from
        k-means, random labels and four mixed starts. Errors are fractions of wrong
        rows, as published
pairs   the mean of Table 1 over all 45 pairs of digits, one seed
mnist   the same over all 45 pairs of MNIST, one run at each point of the grid. It takes
        many hours, so it runs only if it is requested
growth  Fig. 1 of the paper: seconds of a run and of a generation against rows, beside a
        fitness that is computed from scratch in O(n²), and one that trains a support
        vector machine
restarts
        Fig. 2 of the paper: the smallest error of several runs with the paper's
        protocol against their number, at the best point of the grid; means of ten
        repetitions

``--quick`` uses three data sets, two pairs of digits, one pair of MNIST, and a few
points of the grid.
"""

import json
import time
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from benchmarks import protocol
from benchmarks.methods import (
    CPMMC,
    EVOLUTION,
    GMMC,
    KMEANS,
    LEAST_SQUARES,
    SDP,
    SVR,
    estimator,
)
from benchmarks.protocol import LABEL_FREE, MNIST_PAIRS, PAPER, Data
from benchmarks.published import EVO as EVO_PAPER
from benchmarks.published import figure
from benchmarks.run import OK, Options, Run, Runs, Section, as_json, frame_of_runs
from benchmarks.studies._skmmc import AS_PUBLISHED
from benchmarks.tables import (
    Goal,
    Result,
    beside_published,
    best,
    goals_of,
    over_seeds,
    slopes_over,
)
from mmcnb import kernels
from mmcnb.datasets import make_block

EVO = "EvoMMC"
FAST = "FastEvoMMC"
SHAKING = "mixed shaking"
NAIVE = "fitness in O(n²)"
TRAINED = "SVM as fitness"
ESTIMATORS = {KMEANS: KMEANS, EVO: EVOLUTION, FAST: EVOLUTION, SHAKING: LEAST_SQUARES}
OPTDIGITS = "optdigits-tes"
MNIST = "mnist"
FEW_ROWS = (
    *(f"{OPTDIGITS}-{pair}" for pair in ("3v8", "1v7", "2v7", "8v9")),
    "ionosphere",
)
SETS = (*FEW_ROWS, "letter-AvB", "satellite-1v2", *MNIST_PAIRS, f"{MNIST}-1v2")
PAIRS = tuple(f"{OPTDIGITS}-{a}v{b}" for a, b in combinations(range(10), 2))
MNIST_ALL = tuple(pair.replace(OPTDIGITS, MNIST) for pair in PAIRS)
WIDTHS = (1.0, 3.0, 5.0)
STARTS: tuple[dict[str, Any], ...] = (
    {"init": "k-means"},
    {"init": "random"},
    {"init": "mixed", "n_init": 4},
)
GRID = tuple(
    {"width": width, "ridge": ridge}
    for width in WIDTHS
    for ridge in (2.0, 200.0, 1000.0)
)
PEER_GRIDS: dict[str, Sequence[dict[str, Any]]] = {
    SVR: [{"width": width, "C": C} for width, C in product(WIDTHS, (0.1, 1.0, 10.0))],
    CPMMC: [start | {"C": C} for start, C in product(STARTS, (2.0, 10.0, 100.0))],
    SDP: [{"width": width} for width in (*WIDTHS, 0.3)],
    GMMC: [{"width": width} for width in (*WIDTHS, 0.3)],
}
RUNS = 10
QUICK_RUNS = 3
SUBSET = 1000  # rows of an MNIST pair to which the paper fits EvoMMC
MANY = 10**7  # generations; an evolution ends earlier, when it no longer improves
MOST_LANDMARKS = 200  # default of FastEvoMMC
SIZES = (250, 500, 1000, 2000, 4000)
QUICK_SIZES = (100, 200, 400)
GENERATIONS = 100_000
RESTARTS = (1, 2, 3, 5, 10, 20)
QUICK_RESTARTS = (1, 2, 5)
NAIVE_SECONDS = 1.0
QUICK_NAIVE_SECONDS = 0.1
PAIR_TABLES = {OPTDIGITS: "evolutionary-pairs", MNIST: "evolutionary-mnist"}
MOST_SLOPES = {EVO: 1.2, FAST: 1.2}


# -- errors ----------------------------------------------------------------------------


@frame_of_runs
def grid(
    scales: Sequence[Sequence[str]],
    options: Options,
    one_seed: bool = False,
    most_runs: int = RUNS,
) -> Runs:
    """Yield all methods with both protocols on the data sets of the scale."""
    for name in options.pick(*scales):
        is_mnist = name.startswith(MNIST)
        rows = options.rows_of(name)
        few_rows = options.rows_of(name, SUBSET if is_mnist else None)
        rows_a_landmark = 100 if is_mnist else 10
        seeds = range(1) if one_seed else options.repeats(1 if is_mnist else 3)
        n_runs = QUICK_RUNS if options.quick or is_mnist else RUNS
        n_runs = min(most_runs, n_runs)
        for seed, method in product(seeds, ESTIMATORS):
            yield Run(name, method, seed, settings={"rows": rows})
        points = options.pick(GRID, GRID[1::3], GRID[1:2])
        for method, n, points_of_method in (
            (KMEANS, rows, ({},)),
            (FAST, rows, points),
            (EVO, few_rows, points),
        ):
            for point, seed in product(points_of_method, seeds):
                yield Run(
                    name,
                    method,
                    seed,
                    parameters=point,
                    protocol=PAPER,
                    settings={
                        "rows": n,
                        "runs": n_runs,
                        "rows a landmark": rows_a_landmark,
                    },
                )
        for method, every_point in PEER_GRIDS.items():
            # Semidefinite programs are deterministic.
            is_programme = method in (SDP, GMMC)
            if is_programme and name not in FEW_ROWS:
                continue
            peer_points = options.pick(every_point, every_point[::2], every_point[:1])
            for point, seed in product(
                peer_points, range(1) if is_programme else seeds
            ):
                yield Run(
                    name,
                    method,
                    seed,
                    parameters=point,
                    protocol=PAPER,
                    settings={"rows": rows, "runs": n_runs if method == CPMMC else 1},
                )


def compute(run: Run) -> dict[str, Any]:
    """Fit a method with its defaults, or several times at a point of the grid.

    In the paper's protocol, the fit with the smallest error counts, which is selected
    with the classes. ``mean_error``, seconds and generations are means over all fits.
    """
    data = run.data
    method = run.method
    if run.protocol == LABEL_FREE:
        parameters: dict[str, Any] = {}
        if method == KMEANS:
            parameters["n_init"] = 10
        elif method == FAST:
            n_landmarks = max(2, min(len(data.y) // 10, MOST_LANDMARKS))
            parameters["n_landmarks"] = n_landmarks
        return fitted(data, method, random_state=run.seed, **parameters)
    parameters = {"n_init": 1} if method == KMEANS else at_point(run, data)
    n_runs = run.settings.get("runs", 1)
    seeds = range(n_runs * run.seed, n_runs * (run.seed + 1))
    fits = [fitted(data, method, random_state=seed, **parameters) for seed in seeds]
    figures = pd.DataFrame(fits).reindex(columns=["seconds", "generations", "error"])
    means = figures.mean().dropna().rename({"error": "mean_error"})
    return min(fits, key=lambda measures: measures["error"]) | means.to_dict()


def at_point(run: Run, data: Data) -> dict[str, Any]:
    """Return the parameters at a point of the grid.

    The bound of the balance is the smallest that the classes satisfy.
    """
    n = len(data.y)
    parameters = dict(run.parameters)
    parameters["balance"] = protocol.known_balance(data.y)
    if "width" in parameters:
        sigma = parameters.pop("width") * range_norm(data.X)
        parameters["gamma"] = 1 / sigma**2
    if run.method == CPMMC:
        return AS_PUBLISHED | parameters
    if run.method in PEER_GRIDS:
        return parameters
    parameters |= {
        "alpha": 1 / (parameters.pop("ridge") * n),
        "centre": False,
        "n_init": 1,
        "sample_size": max(2, n),
        "max_generations": MANY,
    }
    if run.method == FAST:
        parameters |= {
            "n_landmarks": max(2, n // run.settings["rows a landmark"]),
            "n_parents": 1,
            "n_offspring": 1,
        }
    return parameters


def range_norm(X: np.ndarray) -> float:
    """Return the norm of the columns' ranges, the paper's unit of sigma."""
    return float(np.sqrt(np.sum(np.ptp(X, axis=0).astype(float) ** 2)))


def fitted(data: Data, method: str, **parameters: Any) -> dict[str, Any]:
    """Measure one fit; for the evolution, also its generations and its fitness."""
    name = ESTIMATORS.get(method, method)
    model = estimator(name, **parameters)
    measures = protocol.scored(data, model)
    if name == EVOLUTION:
        measures["objective"] = float(model.objective_)
        measures["generations"] = _generations(model)
    return measures


def _generations(model: Any) -> int:
    return int(model.history_["generation"].max())


def table_of(frame: pd.DataFrame) -> pd.DataFrame:
    """Return means over the seeds, for the defaults and for the best point of the grid.

    The best point of the grid is the one with the smallest mean error.
    """
    keys = ["dataset", "protocol", "method"]
    settings = over_seeds(
        frame, [*keys, "parameters"], "error", "mean_error", "generations"
    )
    return best(settings, keys, "error").dropna(axis=1, how="all")


def tables(frame: pd.DataFrame) -> Result:
    """Return Tables 1 and 2 beside the published tables."""
    table = table_of(frame)
    metrics = {
        f"published {metric}": metric for metric in ("error", "seconds", "generations")
    }
    beside = beside_published(table, EVO_PAPER, metrics).dropna(axis=1, how="all")
    return Result({"evolutionary": beside}, published_goals(table))


def tables_of_pairs(frame: pd.DataFrame) -> Result:
    """Return mean errors over the pairs, beside the published means over all pairs."""
    groups = table_of(frame).groupby(["protocol", "method"], sort=False)
    means = groups[["n", "error", "seconds"]].mean().reset_index()
    whole = whole_of_pairs(frame)
    means.insert(0, "dataset", pairs_of(whole, int(groups.size().max())))
    table = beside_published(means, EVO_PAPER, {"published error": "error"})
    return Result({PAIR_TABLES[whole]: table}, published_goals(table))


def whole_of_pairs(frame: pd.DataFrame) -> str:
    """Return the data set to which the pairs of the runs belong."""
    return MNIST if str(frame["dataset"].iloc[0]).startswith(MNIST) else OPTDIGITS


def pairs_of(whole: str, count: int) -> str:
    """Return the paper's name for the mean over the pairs of a data set."""
    return f"{whole}, {count} pairs"


def published_goals(table: pd.DataFrame) -> list[Goal]:
    """Return goals for the errors from the published errors.

    The goals for evolution are for the paper's protocol, those for local search are
    label-free.
    """
    published = {(PAPER, EVO): EVO, (PAPER, FAST): FAST, (LABEL_FREE, SHAKING): EVO}
    goals = []
    for row in table.itertuples():
        method = published.get((row.protocol, row.method), "")
        error = figure(EVO_PAPER, str(row.dataset), method, "error")
        if np.isfinite(error):
            what = f"{row.dataset}: {row.method}, {row.protocol}"
            ours = round(100 * float(row.error), 2)
            goals.append(Goal(what, ours, round(100 * error, 2), unit="%"))
    return goals


# -- seconds against rows --------------------------------------------------------------


@frame_of_runs
def grid_of_growth(options: Options) -> Runs:
    """Yield each method at each size."""
    seconds = options.pick(NAIVE_SECONDS, QUICK_NAIVE_SECONDS, QUICK_NAIVE_SECONDS)
    for n in options.sizes_within(options.pick(SIZES, QUICK_SIZES, QUICK_SIZES)):
        for method in (EVO, FAST, NAIVE, TRAINED):
            yield Run(
                "blobs",
                method,
                0,
                parameters={"rows": n},
                protocol=PAPER,
                settings={"naive seconds": seconds},
            )


def grown(run: Run) -> dict[str, Any]:
    """Measure the seconds of a run and of a generation, with one parent and one child."""
    n = run.parameters["rows"]
    X, R, Z, alpha = _matrices(n)
    start = np.where(np.arange(n) % 2, 1, -1).astype(np.int8)
    if run.method in SLOW:
        seconds = _naive_generation(
            SLOW[run.method](X, R, alpha), start, run.settings["naive seconds"]
        )
        # A whole run takes too long.
        return protocol.facts(X) | {"seconds": np.nan, "generation_seconds": seconds}
    given = {"n_landmarks": n // 10} if run.method == FAST else {}
    given |= {
        "sample_size": n,
        "balance": 0.03,
        "n_parents": 1,
        "n_offspring": 1,
        "n_init": 1,
        "n_jobs": 1,
    }
    given |= {
        "gamma": 1 / range_norm(X) ** 2,
        "alpha": alpha,
        "max_generations": MANY,
        "random_state": 0,
    }
    model = estimator(EVOLUTION, **given)
    found = protocol.facts(X) | {"compile_seconds": protocol.compile_seconds(X, model)}
    found |= protocol.timed(model, X) | {"generations": _generations(model)}
    M = R if run.method == EVO else Z
    evolve = partial(
        kernels.evolve_labels, M, M is R, start[None], int(0.03 * n) + n % 2, 1
    )
    evolve(10, 10, 0)  # compiles the routines
    started = time.perf_counter()
    evolve(GENERATIONS, GENERATIONS, 0)
    return found | {"generation_seconds": (time.perf_counter() - started) / GENERATIONS}


@lru_cache(maxsize=1)
def _matrices(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Return rows, R of all rows, features of a tenth of the rows, and alpha."""
    X, _ = make_block("blobs", 0, n, 2, random_state=1)
    X = X.astype(np.float64)
    alpha = 1 / (1000 * n)
    K = rbf_kernel(X, gamma=1 / range_norm(X) ** 2)
    K -= K.mean(axis=0)
    K -= K.mean(axis=1, keepdims=True)
    values, vectors = np.linalg.eigh(K)
    values = np.maximum(values, 0) / (np.maximum(values, 0) + alpha * n)
    features = vectors * np.sqrt(values)
    return (
        X,
        features @ features.T,
        np.ascontiguousarray(features[:, -(n // 10) :]),
        alpha,
    )


def _quadratic_fitness(
    X: np.ndarray, R: np.ndarray, alpha: float
) -> Callable[[np.ndarray], float]:
    return lambda y: 1 - float(y @ R @ y) / len(y)


def _trained_fitness(
    X: np.ndarray, R: np.ndarray, alpha: float
) -> Callable[[np.ndarray], float]:
    """Return the smallest hinge loss plus norm of a machine of the labels.

    The machine has LIBSVM's form and the same ridge.
    """
    K = rbf_kernel(X, gamma=1 / range_norm(X) ** 2)
    machine = SVC(C=1 / (2 * alpha * len(X)), kernel="precomputed")

    def fitness(y: np.ndarray) -> float:
        f = machine.fit(K, y).decision_function(K)
        f_of_support = (f - machine.intercept_)[machine.support_]
        squared_norm = float((machine.dual_coef_ @ f_of_support)[0])
        loss = float(np.maximum(0, 1 - y * f).mean())
        return loss + alpha * squared_norm

    return fitness


SLOW = {NAIVE: _quadratic_fitness, TRAINED: _trained_fitness}


def _naive_generation(
    fitness: Callable[[np.ndarray], float], y: np.ndarray, seconds: float
) -> float:
    """Return the seconds of a generation whose fitness is computed from scratch."""
    random = np.random.default_rng(0)
    y = y.astype(np.float64)
    least = fitness(y)
    generations = 0
    started = time.perf_counter()
    while time.perf_counter() - started < seconds:
        child = y.copy()
        child[random.integers(len(y))] *= -1
        value = fitness(child)
        if value < least:
            y = child
            least = value
        generations += 1
    return (time.perf_counter() - started) / generations


def tables_of_growth(frame: pd.DataFrame) -> Result:
    """Return Fig. 1: seconds of a run and of a generation against rows, and their slopes."""
    done = frame[frame["status"] == OK]
    seconds = done.melt(
        ["n", "method"], ["seconds", "generation_seconds"], "of"
    ).dropna()
    slopes = slopes_over(seconds, ["method", "of"], "value").sort_values(
        "method", kind="stable"
    )
    judged = slopes[slopes["of"] == "generation_seconds"].set_index("method")["slope"]
    goals = goals_of(judged, MOST_SLOPES, "slope of the seconds of a generation, {}")
    columns = ["n", "method", "seconds", "generations", "generation_seconds"]
    found = {
        "evolutionary-growth": done[columns],
        "evolutionary-slopes": slopes.drop(columns="sizes"),
    }
    return Result({name: table for name, table in found.items() if len(table)}, goals)


# -- restarts --------------------------------------------------------------------------


@frame_of_runs
def grid_of_restarts(options: Options) -> Runs:
    """Yield evolution with the paper's protocol at each point of the grid.

    The runs are those of the section "tables".
    """
    runs = grid((SETS, FEW_ROWS[::2], SETS[-1:]), options)
    runs = runs[(runs["protocol"] == PAPER) & runs["method"].isin([EVO, FAST])]
    yield from (Run(**row) for row in runs.assign(part="tables").to_dict("records"))


@frame_of_runs
def restarts(frame: pd.DataFrame, options: Options) -> Runs:
    """Yield each number of restarts at the best point of the grid."""
    numbers = options.pick(RESTARTS, QUICK_RESTARTS, QUICK_RESTARTS[:2])
    for row in table_of(frame).itertuples():
        settings = {
            "rows": options.rows_of(str(row.dataset)),
            "restarts": max(numbers),
            "rows a landmark": 10,
        }
        for seed, most in product(options.repeats(RUNS, QUICK_RUNS), numbers):
            given = {"restarts": most, **json.loads(row.parameters)}
            yield Run(
                str(row.dataset),
                row.method,
                seed,
                parameters=given,
                protocol=PAPER,
                part="restarts",
                settings=settings,
            )


def compute_restarts(run: Run) -> dict[str, Any]:
    """Return the smallest error of the first runs of a repetition, and their seconds.

    The error is measured with the classes.
    """
    if run.part == "tables":
        return compute(run)
    data = run.data
    first = run.parameters["restarts"]
    point = {
        name: value for name, value in run.parameters.items() if name != "restarts"
    }
    errors, seconds = repeated(as_json(run._replace(parameters=point)._asdict()))
    return protocol.facts(data.X) | {
        "error": min(errors[:first]),
        "seconds": sum(seconds[:first]),
    }


@lru_cache(maxsize=1)
def repeated(text: str) -> tuple[list[float], list[float]]:
    """Return errors and seconds of all runs of a repetition.

    All numbers of restarts use these runs.
    """
    run = Run(**json.loads(text))
    data = run.data
    count = run.settings["restarts"]
    seeds = range(count * run.seed, count * (run.seed + 1))
    given = at_point(run, data)
    fits = [fitted(data, run.method, random_state=seed, **given) for seed in seeds]
    return [fit["error"] for fit in fits], [fit["seconds"] for fit in fits]


def tables_of_restarts(frame: pd.DataFrame) -> Result:
    """Return Fig. 2: the error against the number of restarts."""
    keys = ["dataset", "method", "restarts"]
    table = over_seeds(frame[frame["part"] == "restarts"], keys, "error")
    return Result(
        {
            "evolutionary-restarts": table[
                [*keys, "error", "error sd", "runs", "seconds"]
            ]
        }
    )


SECTIONS = {
    "tables": Section(
        partial(grid, (SETS, FEW_ROWS[::2], FEW_ROWS[-1:])), compute, tables
    ),
    "pairs": Section(
        partial(grid, (PAIRS, PAIRS[:2], PAIRS[:1]), one_seed=True),
        compute,
        tables_of_pairs,
    ),
    MNIST: Section(
        partial(
            grid, (MNIST_ALL, MNIST_ALL[:1], MNIST_ALL[:1]), one_seed=True, most_runs=1
        ),
        compute,
        tables_of_pairs,
    ),
    "growth": Section(grid_of_growth, grown, tables_of_growth),
    "restarts": Section(
        grid_of_restarts, compute_restarts, tables_of_restarts, (restarts,)
    ),
}


def usual_sections(options: Options) -> list[str]:
    """Return all sections except the one that takes many hours."""
    return [name for name in SECTIONS if name != MNIST]
