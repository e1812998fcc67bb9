"""Support cluster machine for rare classes, beside the SVC of all rows, of samples, and linear machines.

``python -m benchmarks scm [--quick] [--seeds N] [--rows N] [--part NAME ...]`` has six
sections:

rare     a9a with its positives thinned at random (seed 0) to one per 50 other rows;
         tested on all of a9a.t
digits   the eight against the other digits of MNIST (1:9), 10,000 random rows; tested
         on MNIST's test part
rings    two wide rings that overlap, 10^6 rows in Zarr, one in a hundred in the inner
         ring; tested on 100,000 rows
adult    all of a9a, 1:3
grid     gammas, C and weights of the rare class on the thinned a9a
effects  one machine on clusters in feature space, on clusters in input space and on
         random rows, by their number; and SCM round by round. Both use the thinned a9a,
         and the first also 20,000 rows of the rings

SCM is compared with the SVC on all rows and on a random under-sample, Nystroem +
SGDClassifier with 300 components, and LinearSVC. An under-sample has all rare rows and
is as large as the training set of the last machine of SCM. It is used without weights,
and with weights with which it represents all rows.

"label-free" is SCM with its defaults, C = 1 and balanced classes; machines with a
kernel use the gamma that SCM finds. "paper" has the gamma, C and weight that are best
for the SVC on all rows in the section "grid", selected with the test rows. Each fit
runs in a separate, watched process: peak_mib is its largest resident memory, including
Python, libraries and the test rows. SCM reads the store; the other methods have the
rows in memory. Seconds are those of the fit.

Try LinearSVC and a random under-sample first: on a9a and on the rings, one of the two
is about as good, in a fraction of the time. SCM pays off if the SVM of all rows takes
too long: at the selected parameters, it reaches 99.3 % of the SVC's average precision
on the thinned a9a, in a fifth of the SVC's time. At 1:3, it is behind both.

``--quick`` uses fewer rows, one seed, and the sections rare, rings and effects.
"""

import json
import sys
import time
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import mmcnb
from benchmarks import protocol
from benchmarks.protocol import LABEL_FREE, MIB, PAPER, Data
from benchmarks.run import OK, Options, Run, Runs, Section, frame_of_runs
from benchmarks.studies import _scm_machines as machines
from benchmarks.studies._scm_machines import (
    LINEAR,
    NYSTROEM,
    OURS,
    SCM,
    SVC,
    UNDER,
    WEIGHTED,
    Fit,
)
from benchmarks.tables import Goal, Result
from mmcnb import SupportClusterMachine
from mmcnb.support_clusters.pseudo_centres import pseudo_centres

RARE = "a9a, 1:50"
DIGITS = "MNIST, a digit and the rest"
RINGS = "rings, 1:100"
ADULT = "a9a, 1:3"
TASKS = {"rare": RARE, "digits": DIGITS, "rings": RINGS, "adult": ADULT}
METHODS = dict.fromkeys(
    (RARE, DIGITS, RINGS), (SVC, UNDER, WEIGHTED, NYSTROEM, LINEAR)
) | {ADULT: (machines.SCM_BOTH, SVC, machines.SAMPLE, UNDER, NYSTROEM, LINEAR)}
SMOKE_METHODS = (SVC, WEIGHTED)
DETERMINISTIC = (SVC, LINEAR)  # except for gamma
MOST_SVC_ROWS = 50_000
QUICK_SECTIONS = ("rare", "rings", "effects")
SMOKE_SECTIONS = ("rare", "grid", "effects")
# Per cent of the figure of the SVC on all rows.
LEAST_PRECISION = 98.0
MOST_TIME = 25.0
FIGURES = [
    "balanced_accuracy",
    "roc_auc",
    "average_precision",
    "seconds",
    "support_vectors",
]
FIGURES += ["rows_trained_on", "peak_mib"]
THINNED = 50  # number of common rows per rare row
DIGIT = 8
DIGIT_ROWS = 10_000
QUICK_ROWS = 4000
# Radii of the common and the rare ring, which overlap.
RADII = (1.0, 0.4)
NOISE = 0.2
RARITY = 100
RING_ROWS = 10**6
QUICK_RING_ROWS = 20_000
FEW_RING_ROWS = 20_000
RING_TEST_ROWS = 100_000
BLOCK = 2**16
# The best parameters of the SVC in the grid.
CHOSEN: dict[str, Any] = {"gamma": 0.01, "C": 1.0, "rare_weight": 10.0}
GAMMAS = (0.01, 0.03)
POINTS = (
    {"C": 0.1},
    {"C": 1.0},
    *({"C": C, "rare_weight": 10.0} for C in (0.1, 0.3, 1.0)),
)
GRID_SAMPLE = 2500
# The kernel of the clustering in each space.
SPACES = {"feature space": "rbf", "input space": "linear"}
RANDOM = "random rows"
DRAWN = "drawn rows"
CENTRES = "pseudo-centres"
CHOICES = (
    RANDOM,
    *(f"{choice}, {space}" for choice in (DRAWN, CENTRES) for space in SPACES),
)
CLUSTERS = (25, 50, 100, 200, 400, 800)
QUICK_CLUSTERS = (25, 100)
SEEDS = 3
MOST_ROUNDS = 5
# as in a fit of SCM
LANDMARKS = 50
PASSES = 1


# -- sets ------------------------------------------------------------------------------


class Task(NamedTuple):
    """Rows to train on and rows to test on; class 1 is rare."""

    train: Data
    test: Data


def size_of(options: Options) -> dict[str, Any]:
    """Return the settings that determine how many rows a task has."""
    return {"rows": options.rows, "quick": options.quick}


@lru_cache(maxsize=2)
def load_task(name: str, rows: int | None, quick: bool) -> Task:
    """Return one of the tasks, cached for the next runs of this process."""
    if name == RINGS:
        n = min(QUICK_RING_ROWS if quick else RING_ROWS, rows or RING_ROWS)
        return Task(rings(n, 0), rings(min(n, RING_TEST_ROWS), 1))
    most = QUICK_ROWS if quick else None

    def load(source: str, bound: int | None) -> Data:
        return protocol.load_rows(source, protocol.rows_within(source, rows, bound))

    if name == DIGITS:
        train = _eights(load("mnist-train", most or DIGIT_ROWS))
        return Task(train, _eights(load("mnist-test", most)))
    train = load("a9a", most)
    test = load("a9a.t", most)
    train = Data(train.name, train.X, (train.y > 0).astype(int))
    test = Data(test.name, test.X, (test.y > 0).astype(int))
    return Task(thinned(train, THINNED) if name == RARE else train, test)


def _eights(digits: Data) -> Data:
    """Return digits with pixels from 0 to 1, where class 1 is the eight."""
    is_eight = (digits.y == DIGIT).astype(int)
    return Data(DIGITS, digits.X / np.float32(255), is_eight)


def task_of(run: Run) -> Task:
    """Return the task of a run."""
    return load_task(run.dataset, run.settings["rows"], run.settings["quick"])


def thinned(data: Data, ratio: int, random_state: int = 0) -> Data:
    """Return the data with fewer rows of class 1: one for ``ratio`` other rows.

    The rows are drawn at random.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.protocol import Data
    >>> from benchmarks.studies.scm import thinned
    >>> int(thinned(Data("few", np.eye(12), np.arange(12) % 2), ratio=3).y.sum())
    2
    """
    common = np.flatnonzero(data.y == 0)
    rare = np.flatnonzero(data.y == 1)
    n_rare = max(2, common.size // ratio)
    drawn = np.random.RandomState(random_state).permutation(rare)[:n_rare]
    rows = np.sort(np.concatenate([common, drawn]))
    return Data(data.name, data.X[rows], data.y[rows])


def rings(n: int, random_state: int) -> Data:
    """Draw two wide rings that overlap; about one row in a hundred is in the inner ring.

    A smaller number of rows gives the first rows of a larger number.
    """
    blocks = []
    classes = []
    for start in range(0, n, BLOCK):
        random = np.random.default_rng([random_state, start])
        y = (random.random(BLOCK) < 1 / (RARITY + 1)).astype(np.int64)
        angle = random.uniform(0, 2 * np.pi, BLOCK)
        radius = np.take(RADII, y) + random.normal(0, NOISE, BLOCK)
        X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
        blocks.append(X.astype(np.float32))
        classes.append(y)
    return Data(RINGS, np.concatenate(blocks)[:n], np.concatenate(classes)[:n])


def write_task(task: Task, folder: Path) -> None:
    """Write a task as two stores."""
    folder.mkdir()
    for path, data in zip(stores_in(folder), task, strict=True):
        protocol.write_rows(data, path)


def stores_in(folder: Path) -> tuple[Path, Path]:
    """Return the paths of the rows to train on and to test on."""
    return folder / "train.zarr", folder / "test.zarr"


# -- all methods on one set ------------------------------------------------------------


@frame_of_runs
def grid(task: str, options: Options) -> Runs:
    """Yield SCM with its defaults and, on the thinned a9a, also at the selected parameters."""
    points: list[dict[str, Any]] = [{}]
    if task == RARE and not options.smoke:
        points.append(CHOSEN)
    for point, seed in product(points, options.repeats(3 if task == RARE else 1)):
        yield Run(
            task,
            SCM,
            seed,
            parameters=point,
            protocol=PAPER if point else LABEL_FREE,
            settings=size_of(options),
        )


@frame_of_runs
def others(task: str, frame: pd.DataFrame, options: Options) -> Runs:
    """Yield the other methods at the same parameters.

    The other methods use the gamma and the number of rows that SCM found.
    """
    for row in frame[frame["status"] == OK].itertuples():
        point = json.loads(row.parameters)
        taken = {"gamma": row.found_gamma, "rows trained on": int(row.rows_trained_on)}
        for method in SMOKE_METHODS if options.smoke else METHODS[task]:
            repeated = row.seed > 0 and method in DETERMINISTIC
            if not repeated and (method != SVC or row.n <= MOST_SVC_ROWS):
                yield Run(
                    task,
                    method,
                    row.seed,
                    parameters=point,
                    protocol=row.protocol,
                    settings=size_of(options) | taken,
                )


def compute(run: Run) -> dict[str, Any]:
    """Fit once in a watched process."""
    write = partial(write_task, task_of(run))
    folder = protocol.written_once(run.folder, run.part, write)
    train, test = map(str, stores_in(Path(folder)))
    command = [sys.executable, "-m", machines.__name__]
    command += [train, test, json.dumps(fit_of(run))]
    report, peak = protocol.run_and_watch(command)
    return protocol.facts(train) | report | {"peak_mib": peak / MIB}


def fit_of(run: Run) -> Fit:
    """Return the parameters of a machine.

    SCM finds gamma and the number of rows, unless the point has a gamma.
    """
    parameters = dict(run.parameters)
    if run.method not in OURS:
        parameters.setdefault("gamma", run.settings.get("gamma"))
    rows = run.settings.get("rows trained on", 0)
    return Fit(run.method, run.seed, **parameters, rows=rows)


def tables(name: str, frame: pd.DataFrame) -> Result:
    """Return means over the seeds, with goals for the thinned a9a."""
    table = means(frame.sort_values("protocol", kind="stable"))
    return Result({f"scm-{name}": table}, goals_of(table) if name == "rare" else [])


def means(frame: pd.DataFrame, *more: str) -> pd.DataFrame:
    """Return one row per method and point, with means over the seeds."""
    keys = ["dataset", "protocol", "method", *more]
    groups = frame[frame["status"] == OK].groupby([*keys, "parameters"], sort=False)
    table = groups[["n", *(name for name in FIGURES if name in frame)]].mean()
    table.insert(1, "runs", groups.size())
    return table.reset_index()


def goals_of(table: pd.DataFrame) -> list[Goal]:
    """Return goals for SCM relative to the SVC of all rows, and to the better sample of its size.

    All methods have the same parameters.
    """
    goals = []
    for by, rows in table.groupby("protocol", sort=False):
        figures = rows.set_index("method")[["average_precision", "seconds"]]
        if not {SCM, SVC, WEIGHTED} <= set(figures.index):
            continue
        precision, seconds = 100 * figures.loc[SCM] / figures.loc[SVC]
        ours = figures.loc[SCM, "average_precision"]
        samples = figures["average_precision"].reindex([UNDER, WEIGHTED])
        title = f"rare, {by}: "
        goals += [
            Goal(
                title + "precision of SCM in that of the SVC",
                precision,
                LEAST_PRECISION,
                unit="%",
                at_least=True,
            ),
            Goal(
                title + "seconds of SCM in those of the SVC",
                seconds,
                MOST_TIME,
                unit="%",
            ),
            Goal(
                title + "precision of SCM, bound: under-sample",
                ours,
                samples.max(),
                at_least=True,
            ),
        ]
    return goals


# -- grid ------------------------------------------------------------------------------


@frame_of_runs
def grid_of_points(options: Options) -> Runs:
    """Yield SCM, the SVC on all rows, and the SVC on under-samples, at each point."""
    points = [{"gamma": gamma} | point for gamma, point in product(GAMMAS, POINTS)]
    settings = size_of(options) | {"rows trained on": GRID_SAMPLE}
    methods = (SCM, SVC, UNDER, WEIGHTED)
    for point, method in product(options.pick(points, points, points[:1]), methods):
        yield Run(RARE, method, 0, parameters=point, protocol=PAPER, settings=settings)


def compute_point(run: Run) -> dict[str, Any]:
    """Fit once in this process."""
    machines.quieten()
    task = task_of(run)
    model, found = machines.train(fit_of(run), *task.train[1:])
    return protocol.facts(task.train.X) | found | judged(model, task)


def judged(model: Any, task: Task) -> dict[str, float]:
    """Return `measures` on the test rows."""
    return machines.measures(task.test.y, model.decision_function(task.test.X))


def tables_of_points(frame: pd.DataFrame) -> Result:
    """Return average precision and seconds of each method, one row per point.

    The first row is the best point of the SVC.
    """
    weights = (
        frame.get("rare_weight", pd.Series(np.nan, frame.index))
        .astype(object)
        .fillna("balanced")
    )
    figures = ["average_precision", "seconds"]
    index = ["gamma", "C", "rare_weight"]
    table = frame.assign(rare_weight=weights).pivot_table(
        figures, index, "method", sort=False
    )
    table.columns = [f"{method} {figure}" for figure, method in table.columns]
    return Result(
        {
            "scm-grid": table.sort_values(
                f"{SVC} average_precision", ascending=False
            ).reset_index()
        }
    )


# -- effects ---------------------------------------------------------------------------


@frame_of_runs
def grid_of_effects(options: Options) -> Runs:
    """Yield one machine on representatives, and SCM stopped after each round.

    All rare rows are used; representatives have weights.

    The thinned a9a has the selected parameters; the rings have the defaults.
    """
    sizes = {
        RARE: options.rows,
        RINGS: min(options.rows or FEW_RING_ROWS, FEW_RING_ROWS),
    }
    clusters = QUICK_CLUSTERS if options.quick else CLUSTERS
    seeds = range(1 if options.quick else options.seeds or SEEDS)
    for (task, rows), seed, k, name in product(sizes.items(), seeds, clusters, CHOICES):
        size = size_of(options) | {"rows": rows}
        yield Run(
            task,
            name,
            seed,
            parameters={"clusters": k},
            protocol=PAPER if task == RARE else LABEL_FREE,
            part="spaces",
            settings=size,
        )
    for seed, most in product(
        seeds, range(1, (2 if options.quick else MOST_ROUNDS) + 1)
    ):
        yield Run(
            RARE,
            SCM,
            seed,
            parameters={"rounds": most} | CHOSEN,
            protocol=PAPER,
            part="rounds",
            settings=size_of(options),
        )


def compute_effect(run: Run) -> dict[str, Any]:
    """Fit a machine on representatives, or SCM with a limited number of rounds."""
    task = task_of(run)
    train = task.train
    facts = protocol.facts(train.X)
    if run.part == "rounds":
        return facts | by_round(task, run.parameters["rounds"], run.seed)
    common = np.flatnonzero(train.y == 0)
    k = min(run.parameters["clusters"], common.size)
    point = CHOSEN
    if run.dataset == RINGS:
        # SCM selects the gamma.
        first = SupportClusterMachine(max_rounds=1, n_clusters=2, random_state=0)
        point = {"gamma": float(first.fit(train.X, train.y).gamma_)}
    started = time.perf_counter()
    rows, weights = representatives(
        run.method, train.X[common], k, point["gamma"], run.seed
    )
    measures = machine_on(task, common[rows], weights, **point)
    return facts | measures | {"seconds": time.perf_counter() - started}


def representatives(
    name: str, X: Any, k: int, gamma: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows that represent all rows, and their weights.

    The representatives are random rows, random members of clusters, or pseudo-centres.
    """
    random = np.random.RandomState(seed)
    n = X.shape[0]
    choice, _, space = name.partition(", ")
    if choice == RANDOM:
        return random.permutation(n)[:k], np.full(k, n / k)
    model = mmcnb.KernelKMeans(
        k,
        kernel=SPACES[space],
        gamma=gamma,
        n_landmarks=LANDMARKS,
        n_init=1,
        max_iter=PASSES,
        random_state=seed,
    )
    protocol.fit(model, X)
    clusters = np.flatnonzero(model.cluster_sizes_)
    if choice == CENTRES:
        rows = pseudo_centres(model, X)[clusters]
    else:
        members = [np.flatnonzero(model.labels_ == cluster) for cluster in clusters]
        rows = np.array([random.choice(rows) for rows in members])
    return rows, model.cluster_sizes_[clusters].astype(np.float64)


def machine_on(
    task: Task, chosen: np.ndarray, weights: np.ndarray, **point: float
) -> dict[str, float]:
    """Train a machine of eq. (6) on rare rows and representatives, and measure it.

    The classes are balanced if no weight is given.
    """
    from sklearn.svm import SVC as KernelMachine

    rare = np.flatnonzero(task.train.y == 1)
    rows = np.concatenate([rare, chosen])
    y = np.repeat([1.0, 0.0], [rare.size, chosen.size])
    rare_weight = point.pop("rare_weight", weights.sum() / rare.size)
    weights = np.concatenate([np.full(rare.size, rare_weight), weights])
    model = KernelMachine(**point).fit(task.train.X[rows], y, sample_weight=weights)
    return judged(model, task)


def by_round(task: Task, most: int, seed: int) -> dict[str, Any]:
    """Measure SCM with a limited number of rounds, at the selected parameters."""
    model = machines.machine(Fit(SCM, seed, **CHOSEN)).set_params(max_rounds=most)
    history = model.fit(task.train.X, task.train.y).history_
    last = history.iloc[-1]
    return {
        "negatives": int(last["negatives"]),
        "support_vectors": int(last["support_vectors"]),
        "rows_trained_on": machines.trained_rows(model),
        "seconds": history["seconds"].sum(),
    } | judged(model, task)


def tables_of_effects(frame: pd.DataFrame) -> Result:
    """Return means over the seeds, by representatives and by rounds."""
    spaces, rounds = (
        frame[frame["part"] == part].dropna(axis=1, how="all")
        for part in ("spaces", "rounds")
    )
    return Result(
        {"scm-spaces": means(spaces, "clusters"), "scm-rounds": means(rounds, "rounds")}
    )


def usual_sections(options: Options) -> tuple[str, ...]:
    """Return the sections that run by default."""
    return options.pick(tuple(SECTIONS), QUICK_SECTIONS, SMOKE_SECTIONS)


SECTIONS = {
    name: Section(
        partial(grid, task), compute, partial(tables, name), (partial(others, task),)
    )
    for name, task in TASKS.items()
}
SECTIONS |= {
    "grid": Section(grid_of_points, compute_point, tables_of_points),
    "effects": Section(grid_of_effects, compute_effect, tables_of_effects),
}
