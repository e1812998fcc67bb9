"""Multiple kernel clustering: the paper's Tables 2 and 3 and Figures 1-3, the thesis's curves, and MNIST.

``python -m benchmarks mkc [--quick] [--seeds N] [--rows N] [--part NAME ...]`` has six
sections:

table2  Table 2 of Zhao, Kwok and Zhang except MNIST, and the thesis's Tab. 5-3: each
        single kernel, MKC, k-means, normalised cut, and IterSVR for two clusters. In
        the paper's protocol, a cluster counts as its majority class, and the parameters
        with the highest accuracy are selected from a grid, a subset of the thesis's
        Tab. 5-2; k-means is the mean of 50 runs from random rows. The label-free
        methods have their defaults: k-means with ten starts, spectral clustering with
        ten neighbours. The paper writes the Gaussian exp(-d²/(2 sigma)), without a
        square; the grid of MKC has both readings, and the grids of its peers have the
        printed one. The grid of MKC also has the threshold 1 and the adaptive threshold
        and, for two clusters, four random labellings at a large C. All rows are the
        basis, except for letterABCD, which has landmarks. Columns are as in the files.
        svmguide1-a is a random sample, because the paper does not say which 1,000 rows
        it used
table3  Table 3 and the thesis's Tab. 5-4: a model of some rows labels the other rows.
        The figures of Table 3 for models of all rows are those of Table 2
speed   Fig. 1: seconds beside the sum of the seconds of each single kernel; Fig. 2:
        seconds against rows; Fig. 3: seconds against kernels and against eta
curves  Fig. 5.1 to 5.3 of the thesis: accuracy by round of the CCCP; 5.4: seconds
        against rows and eta together; 5.5 to 5.7: violation of the next constraint by
        cutting plane. All fits have the form of the thesis and start from random
        labels. The thesis runs CCCP at each cutting plane; our fits do not change the
        labels while planes are added
mnist   the last line of Table 2: parameters are selected with the classes of 1,000
        rows, and then all 35,735 rows are fitted; and the default is fitted to a Zarr
        store in a watched process: peak memory, and time beside k-means
starts  20,000 rows of rings in 64 columns and of two moons in 22 columns, 36 seeds: how
        many fits with the defaults do not find them

``--quick`` uses two data sets of 200 rows, a few points of the grid, and fewer points
of the figures.
"""

import json
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import protocol
from benchmarks.methods import CUT, KMEANS, MULTIPLE, SVR, estimator
from benchmarks.protocol import LABEL_FREE, PAPER
from benchmarks.published import MKC as MKC_PAPER
from benchmarks.published import THESIS, figure
from benchmarks.run import OK, Options, Run, Runs, Section, frame_of_runs
from benchmarks.studies import _mkc_curves as curves
from benchmarks.studies import _mkc_models as models
from benchmarks.studies import _mkc_starts as starts
from benchmarks.studies._mkc_models import (
    ACCURACY,
    K1,
    K2,
    K3,
    METHODS,
    MKC,
    MNIST,
    MNIST_SAMPLE,
    OURS,
    SETS,
)
from benchmarks.tables import (
    Goal,
    Result,
    beside_published,
    best,
    goals_of,
    log_slope,
    over_seeds,
)

SAMPLE = "MKC of a sample"
SLACK = 0.01
QUICK_FORMS = ("C=2^1", "C=10, adaptive", "C=2^6, coin flip 0")
# Number of Gaussians, the best single ones, that are tried in the combination.
COMBINED = 3
CUT_FRACTIONS = tuple(f / 10 for f in range(1, 11))
SVR_WEIGHTS = (0.1, 1.0, 10.0)  # values of C
# of k-means
RUNS = 50
QUICK_RUNS = 10
KEYS = ["dataset", "protocol", "method"]
TABLE2_COLUMNS = [
    "dataset",
    "n",
    "method",
    "published accuracy",
    "thesis accuracy",
    ACCURACY,
    "accuracy sd",
]
TABLE2_COLUMNS += ["label-free accuracy", "published rand", "rand", "label-free rand"]
TABLE2_COLUMNS += ["seconds", "parameters"]
SCALES = {  # the data sets of a section: all, quick, smoke
    "table2": (
        (*models.TABLE2, *models.THESIS_ONLY),
        ("ionosphere", "digits0689"),
        ("ionosphere",),
    ),
    "table3": (tuple(models.TABLE3), ("ringnorm", "digits1v7-tra"), ("ringnorm",)),
    "mnist": 3 * ((MNIST_SAMPLE,),),
}
QUICK_MNIST_ROWS = 400
TURNS = 3
SIZES = (1000, 2000, 4000, 8000, 16_000, 32_000)
QUICK_SIZES = (250, 500, 1000)
SMOKE_SIZES = (100, 200)
ETAS = (0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
KERNELS_SET = "digits0689"
LANDMARKS = {"threshold": "fixed", "n_landmarks": 200, "sample_size": 1000}
FRACTION = 0.3  # sigma = (f sigma0)²
MOST_SLOPE = 1.1
ALONE = {
    "K1 linear, alone": ["K1"],
    "K2 polynomial, alone": ["K2"],
    "K3 Gaussian, alone": ["K3"],
}
THREE = ["K1", "K2", "K3"]
COLUMNS = {
    "rows": ["n", "passes", "rounds"],
    "kernels": ["kernels", "n"],
    "eta": ["eta", "n", "planes"],
}


# -- Table 2 ---------------------------------------------------------------------------


@frame_of_runs
def points_of(name: str, method: str, kernels: Iterable[str], options: Options) -> Runs:
    """Return every form with each choice of kernels."""
    rows = {"rows": models.rows_of_set(name, options)}
    forms = [*models.FORMS, *(models.FLIPS if SETS[name].n_clusters == 2 else ())]
    if options.quick:
        forms = [
            form
            for form in forms
            if form in QUICK_FORMS[: 1 if options.smoke else None]
        ]
    # other sections use the same runs
    part = "mnist" if name == MNIST_SAMPLE else "table2"
    for one, form, seed in product(kernels, forms, range(options.seeds or 1)):
        yield Run(
            name,
            method,
            seed,
            parameters={"kernels": one, "form": form},
            protocol=PAPER,
            part=part,
            settings=rows,
        )


def alone(scales: Sequence[Sequence[str]], options: Options) -> pd.DataFrame:
    """Yield the grid of each single kernel, on the data sets of the scale."""
    most = options.pick(None, 2, 1)
    kinds = {
        method: list(kernels)[:most]
        for method, kernels in models.base_kernels(1.0).items()
    }
    names = options.pick(*scales)
    return pd.concat(
        [
            points_of(name, *kind, options)
            for name, kind in product(names, kinds.items())
        ]
    )


def combined(frame: pd.DataFrame, options: Options) -> pd.DataFrame:
    """Yield the grid of several kernels, which were the best single kernels of their kinds."""
    groups = frame.groupby("dataset", sort=False)
    return pd.concat(
        [points_of(name, MKC, together(part), options) for name, part in groups]
    )


def together(alone: pd.DataFrame) -> list[str]:
    """Return combinations of the best single kernels of each kind to try.

    One combination has all three kinds; another has several Gaussians.
    """
    forms = alone.groupby(["method", "kernels", "form"], sort=False)[ACCURACY]
    kernels = forms.mean().dropna().groupby(["method", "kernels"], sort=False)
    ranked = kernels.max().sort_values(ascending=False, kind="stable")

    def best_of(method: str, most: int) -> list[str]:
        return [kernel for kind, kernel in ranked.index if kind == method][:most]

    gaussians = best_of(K3, COMBINED)
    others = [*best_of(K1, 1), *best_of(K2, 1)]
    combinations = [", ".join([*others, gaussian]) for gaussian in gaussians]
    if len(gaussians) > 1:
        combinations.append(", ".join(gaussians))
    return combinations


@frame_of_runs
def others(frame: pd.DataFrame, options: Options) -> Runs:
    """Yield our methods with their defaults, then the peers with both protocols."""
    rows = {
        name: {"rows": models.rows_of_set(name, options)}
        for name in frame["dataset"].unique()
    }
    step = 5 if options.quick else 1
    widths = [{"width": width} for width in CUT_FRACTIONS[::step]]
    points = {
        CUT: widths,
        SVR: [width | {"C": C} for width, C in product(widths, SVR_WEIGHTS[::step])],
    }
    for name in rows:
        for method, seed in product(OURS, options.repeats(3)):
            yield Run(name, method, seed, settings=rows[name])
        yield from kmeans_runs(name, options, rows[name])
        for method in (CUT, SVR) if SETS[name].n_clusters == 2 else (CUT,):
            for seed, given in product(options.repeats(3), ({}, *points[method])):
                yield Run(
                    name,
                    method,
                    seed,
                    parameters=given,
                    protocol=PAPER if given else LABEL_FREE,
                    settings=rows[name],
                )


def kmeans_runs(name: str, options: Options, settings: dict[str, Any]) -> Runs:
    """Yield runs from random rows, as published, and the best of ten starts."""
    for seed in options.repeats(RUNS, QUICK_RUNS):
        yield Run(
            name,
            KMEANS,
            seed,
            parameters={"init": "random", "n_init": 1},
            protocol=PAPER,
            settings=settings,
        )
    for seed in options.repeats(3):
        yield Run(name, KMEANS, seed, parameters={"n_init": 10}, settings=settings)


def chosen_of(frame: pd.DataFrame) -> pd.DataFrame:
    """Return means over the seeds at the parameters with the highest mean accuracy.

    The earlier of equals counts.  The weights of the kernels are those of the first
    seed.
    """
    settings = over_seeds(frame, [*KEYS, "parameters"], ACCURACY, "rand")
    weights = frame.groupby([*KEYS, "parameters"], sort=False)["weights"].first()
    return best(
        settings.join(weights, on=[*KEYS, "parameters"]), KEYS, ACCURACY, largest=True
    )


def beside(chosen: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each data set and method, with both protocols and published figures."""
    keys = ["dataset", "method"]
    paper = chosen[chosen["protocol"] == PAPER].set_index(keys)
    free = chosen[chosen["protocol"] == LABEL_FREE].set_index(keys)
    free = free[[ACCURACY, "rand"]].add_prefix("label-free ")
    table = paper.join(free, how="outer").assign(protocol=PAPER)
    names = chosen["dataset"].unique()
    order = pd.MultiIndex.from_product([names, METHODS], names=keys)
    table = table.reindex(order[order.isin(table.index)]).reset_index()
    published = {f"published {metric}": metric for metric in (ACCURACY, "rand")}
    table = beside_published(table, MKC_PAPER, published)
    table = beside_published(table, THESIS, {"thesis accuracy": ACCURACY})
    return table[TABLE2_COLUMNS]


def goals_beside(name: str, accuracy: pd.Series, published: float) -> list[Goal]:
    """Return goals for MKC relative to the published figure and the best single kernel.

    MKC may be one point behind. The published figure may be missing.
    """
    bounds = pd.Series(
        {"published": published, "best kernel alone": accuracy[[K1, K2, K3]].max()}
    ).dropna()
    figures = dict.fromkeys(bounds.index, accuracy[MKC])
    return goals_of(
        figures, bounds - SLACK, f"{name}: MKC beside {{}}", "%", at_least=True
    )


def table2(frame: pd.DataFrame) -> Result:
    """Return accuracy and Rand index of all methods, and weights of the kernels."""
    chosen = chosen_of(frame)
    table = beside(chosen)
    goals = list[Goal]()
    for name, part in table.groupby("dataset", sort=False):
        rows = part.set_index("method").reindex(METHODS)
        known = rows["published accuracy"].fillna(rows["thesis accuracy"])[MKC]
        goals += goals_beside(str(name), rows[ACCURACY], known)
    return Result(
        {"mkc-table2": table, "mkc-table2-weights": weights_in(chosen)}, goals
    )


def weights_in(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the weights of the kernels, one row per fit of several kernels."""
    return frame.loc[
        frame["method"] == MKC, ["dataset", "protocol", "parameters", "weights"]
    ]


# -- Table 3 ---------------------------------------------------------------------------


@frame_of_runs
def labelling(frame: pd.DataFrame, options: Options) -> Runs:
    """Yield a model at the best point of the grid, and a model with the defaults.

    The models have the published names.
    """
    points = best_points(frame, MKC)
    for name in frame["dataset"].unique():
        settings = {
            "name": name,
            "rows": models.rows_of_set(name, options),
            "other rows": models.rows_of_set(models.TABLE3[name], options, None),
        }
        dataset = models.WHOLE.get(name, name)
        for given, how in ((points.get(name), PAPER), ({}, LABEL_FREE)):
            if given is not None:
                yield Run(
                    dataset,
                    SAMPLE,
                    0,
                    parameters=given,
                    protocol=how,
                    part="table3",
                    settings=settings,
                )


def best_points(frame: pd.DataFrame, method: str) -> dict[str, dict[str, str]]:
    """Return the kernels and the form with the highest mean accuracy, for each data set.

    The earlier of equals counts.
    """
    chosen = chosen_of(frame[frame["method"] == method])
    return {row.dataset: json.loads(row.parameters) for row in chosen.itertuples()}


def compute_table3(run: Run) -> dict[str, Any]:
    """Fit a model to some rows, and return the accuracy of its labels on other rows."""
    if run.method != SAMPLE:
        return models.compute(run)
    settings = run.settings
    name = settings["name"]
    learnt = models.load_set(name, settings["rows"])
    rest = models.load_set(models.TABLE3[name], settings["other rows"])
    model = models.ours(run, name)
    measures = protocol.scored(learnt, model, models.scores)
    measures["learnt_accuracy"] = measures[ACCURACY]
    measures |= models.scores(rest.y, model.predict(rest.X))
    measures["other_rows"] = len(rest.y)
    return measures


def table3(frame: pd.DataFrame) -> Result:
    """Return the accuracy on the other rows with both protocols, beside the published ones."""
    keys = ["dataset", "protocol", "parameters"]
    told = ("rand", "learnt_accuracy", "other_rows")
    table = over_seeds(frame[frame["part"] == "table3"], keys, ACCURACY, *told)
    for paper, title in ((MKC_PAPER, "published"), (THESIS, "thesis")):
        table[f"{title} accuracy"] = [
            figure(paper, name, SAMPLE, ACCURACY) for name in table["dataset"]
        ]
    judged = table[(table["protocol"] == PAPER) & table["published accuracy"].notna()]
    judged.index = [
        f"{row.dataset}: model of {row.n:,} rows on all" for row in judged.itertuples()
    ]
    bounds = judged["published accuracy"] - SLACK
    return Result(
        {"mkc-table3": table},
        goals_of(judged[ACCURACY], bounds, "{}", "%", at_least=True),
    )


# -- Figures 1 to 3 --------------------------------------------------------------------


@frame_of_runs
def grid_of_speed(options: Options) -> Runs:
    """Yield fits of one kernel and of three, in which one quantity grows.

    The quantity is the number of rows, the number of Gaussians, or the violation eta.
    """
    exact = {**models.FORM, "basis": "exact"}
    turns = {"turns": 1 if options.quick else TURNS}

    def run(
        axis: str,
        value: Any,
        name: str,
        kernels: Sequence[Any],
        rows: int | None,
        **given: Any,
    ) -> Run:
        settings = turns | {"rows": rows, "kernels": list(kernels), "given": given}
        varied, method = ({}, value) if axis == "sets" else ({axis: value}, MKC)
        return Run(
            name, method, 0, parameters=varied, part=f"speed, {axis}", settings=settings
        )

    names = tuple(models.TABLE2)
    for name in options.pick(names, ("digits1v7", "digits0689"), ("digits1v7",)):
        for method, kernels in (*ALONE.items(), (MKC, THREE)):
            yield run(
                "sets",
                method,
                name,
                kernels,
                models.rows_of_set(name, options),
                **exact,
            )
    for n in options.sizes_within(options.pick(SIZES, QUICK_SIZES, SMOKE_SIZES)):
        yield run("rows", n, MNIST, THREE, n, **LANDMARKS)
    rows = models.rows_of_set(KERNELS_SET, options)
    for count in range(1, (3 if options.quick else 10) + 1):
        yield run("kernels", count, KERNELS_SET, range(count), rows, **exact)
    for eta in (0.1, 0.01) if options.quick else ETAS:
        yield run("eta", eta, KERNELS_SET, THREE, rows, eta=eta, **exact)


def compute_speed(run: Run) -> dict[str, Any]:
    """Return median seconds of several fits, after one that is not counted.

    Rounds are counted per start and C.
    """
    settings = run.settings
    data = models.load_set(run.dataset, settings["rows"])
    chosen = [
        kernel_of(run.dataset, settings["rows"], one) for one in settings["kernels"]
    ]
    k = SETS[run.dataset].n_clusters
    given = {"random_state": 0, "kernels": chosen} | settings["given"]
    model = estimator(MULTIPLE, k, **given)
    compiled = {"compile_seconds": protocol.compile_seconds(data.X, model)}
    protocol.reset_peak()
    seconds = protocol.turns(
        {"seconds": partial(protocol.fit, model, data.X)}, settings["turns"]
    )
    measures = (
        protocol.facts(data.X) | compiled | seconds | {"peak_mib": protocol.peak_mib()}
    )
    history = model.history_
    rounds = (
        history.groupby(["stage", "start", "C"], dropna=False)["round"].max().mean() + 1
    )
    counts = {
        "rounds": rounds,
        "passes": len(history),
        "planes": int(history["planes"].max()),
    }
    told = COLUMNS.get(run.part.removeprefix("speed, "), ())
    return measures | {name: count for name, count in counts.items() if name in told}


def kernel_of(name: str, rows: int | None, which: str | int) -> Any:
    """Return one of the paper's three kernels, or a Gaussian by its position.

    The bandwidths are spread around 1.

    Examples
    --------
    >>> from benchmarks.studies.mkc import kernel_of
    >>> kernel_of("any", None, "K1")
    'linear'
    """
    fixed = {"K1": "linear", "K2": models.polynomial(2)}
    if which in fixed:
        return fixed[which]
    place = 0 if which == "K3" else int(which)
    step = (place + 1) // 2 * (-1) ** place
    return "rbf", {
        "gamma": models.gamma_of(
            (FRACTION * models.sigma0_of(name, rows) * 2 ** (step / 2)) ** 2
        )
    }


def tables_of_speed(frame: pd.DataFrame) -> Result:
    """Return the figures as tables, and the slopes of the seconds."""
    sets = frame[frame["part"] == "speed, sets"]
    order = {"index": sets["dataset"].unique(), "columns": [*ALONE, MKC]}
    sets = sets.pivot(index="dataset", columns="method", values="seconds").reindex(
        **order
    )
    sets["MKC / sum"] = sets[MKC] / sets[[*ALONE]].sum(axis=1, skipna=False)
    found = {"mkc-speed-sets": sets.reset_index().rename_axis(columns=None)}
    done = frame[frame["status"] == OK]
    slopes = []
    for axis, columns in COLUMNS.items():
        table = done.loc[done["part"] == f"speed, {axis}", [*columns, "seconds"]]
        found[f"mkc-speed-{axis}"] = table
        slopes.append((columns[0], *log_slope(table[columns[0]], table["seconds"])))
    found["mkc-speed-slopes"] = pd.DataFrame(
        slopes, columns=["seconds against", "slope", "low", "high"]
    )
    of_rows = {
        axis: slope for axis, slope, *_ in slopes if axis == "n" and np.isfinite(slope)
    }
    return Result(
        found,
        goals_of(
            of_rows, {"n": MOST_SLOPE}, "seconds against {}, with landmarks: slope"
        ),
    )


# -- MNIST 0-4 -------------------------------------------------------------------------


@frame_of_runs
def all_rows(frame: pd.DataFrame, options: Options) -> Runs:
    """Yield our methods on all rows at the best points of a sample, and k-means.

    The default is also fitted to a store.
    """
    settings = {"rows": models.rows_of_set(MNIST, options, QUICK_MNIST_ROWS)}
    for method in OURS:
        for given in best_points(frame, method).values():
            yield Run(
                MNIST, method, 0, parameters=given, protocol=PAPER, settings=settings
            )
    yield from kmeans_runs(MNIST, options, settings)
    yield Run(MNIST, MKC, 0, settings=settings)


def compute_mnist(run: Run) -> dict[str, Any]:
    """Fit in memory, or fit the default to a store in a watched process."""
    if run.method != MKC or run.protocol == PAPER:
        return models.compute(run)
    data = models.load_set(MNIST, run.settings["rows"])
    write = partial(protocol.write_rows, data)
    store = protocol.written_once(run.folder, f"{MNIST}-{run.settings['rows']}", write)
    k = SETS[MNIST].n_clusters
    # compiled into the cache on disk
    compiled = protocol.compile_seconds(data.X, estimator(MULTIPLE, k))
    words = ("--method", "multiple-kernel-clustering", "--n-clusters", k)
    found = protocol.fit_store(store, run.seed, *words, score=models.scores) | {
        "compile_seconds": compiled
    }
    return found | {"seconds": found["seconds"] + found.pop("label_seconds")}


def tables_of_mnist(frame: pd.DataFrame) -> Result:
    """Return the accuracy on all rows beside the published one.

    The goals are for this accuracy, and for the time relative to k-means.
    """
    frame = frame[frame["dataset"] == MNIST]
    table = over_seeds(frame, [*KEYS, "parameters"], ACCURACY, "rand")
    published = {f"published {metric}": metric for metric in (ACCURACY, "rand")}
    table = beside_published(table, MKC_PAPER, published)
    rows = table.set_index(["protocol", "method"])
    accuracy = rows.loc[PAPER, ACCURACY].reindex(OURS)
    goals = goals_beside(MNIST, accuracy, figure(MKC_PAPER, MNIST, MKC, ACCURACY))
    seconds = rows.loc[LABEL_FREE, "seconds"].reindex([MKC, KMEANS])
    ratio = float(seconds[MKC] / seconds[KMEANS])
    title = f"{MNIST}: seconds of MKC in those of KMeans(5, n_init=10)"
    goals.append(Goal(title, ratio, 1.0))
    return Result({"mkc-mnist": table, "mkc-mnist-weights": weights_in(frame)}, goals)


SECTIONS = {
    "table2": Section(
        partial(alone, SCALES["table2"]), models.compute, table2, (combined, others)
    ),
    "table3": Section(
        partial(alone, SCALES["table3"]), compute_table3, table3, (combined, labelling)
    ),
    "speed": Section(grid_of_speed, compute_speed, tables_of_speed),
    "curves": Section(curves.grid, curves.compute, curves.tables, (curves.violations,)),
    "mnist": Section(
        partial(alone, SCALES["mnist"]),
        compute_mnist,
        tables_of_mnist,
        (combined, all_rows),
    ),
    "starts": Section(starts.grid, starts.compute, starts.tables),
}
