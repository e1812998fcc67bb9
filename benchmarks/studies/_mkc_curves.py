"""Curves of the thesis: accuracy by round, violation by cutting plane, and time."""

from functools import lru_cache
from itertools import product
from typing import Any

import pandas as pd

from benchmarks import protocol
from benchmarks.methods import MULTIPLE, estimator
from benchmarks.protocol import PAPER
from benchmarks.run import OK, Options, Run, Runs, frame_of_runs
from benchmarks.studies import _mkc_models as models
from benchmarks.studies._mkc_models import ACCURACY, MKC
from benchmarks.tables import Result

NAMES = ("ionosphere", "digits1v7-tra", "ringnorm")
BY_ROUND = "curves, accuracy"
BY_STEP = "curves, violation"
OF_TIME = "curves, time"
ROUNDS = 12
QUICK_ROUNDS = 6
SMOKE_ROUNDS = 2
TIMED = "ringnorm"
SIZES = (125, 250, 500, 1000)
QUICK_SIZES = (60, 120)
ETAS = (0.1, 0.03, 0.01, 0.003)
QUICK_ETAS = (0.1, 0.01)


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield fits that end after each number of rounds, for each data set, size and precision."""
    names = options.pick(NAMES, NAMES, NAMES[:1])
    most_rounds = options.pick(ROUNDS, QUICK_ROUNDS, SMOKE_ROUNDS)
    for name, rounds in product(names, range(1, most_rounds + 1)):
        yield Run(
            name,
            MKC,
            0,
            parameters={"round": rounds},
            protocol=PAPER,
            part=BY_ROUND,
            settings={"rows": models.rows_of_set(name, options)},
        )
    sizes = options.sizes_within(options.pick(SIZES, QUICK_SIZES, QUICK_SIZES))
    etas = options.pick(ETAS, QUICK_ETAS, QUICK_ETAS)
    for n, eta in product(sizes, etas):
        yield Run(
            TIMED,
            MKC,
            0,
            parameters={"rows": n, "eta": eta},
            protocol=PAPER,
            part=OF_TIME,
            settings={"rows": n},
        )


@frame_of_runs
def violations(frame: pd.DataFrame, options: Options) -> Runs:
    """Yield each cutting plane of the fits with the most rounds."""
    is_of_rounds = (frame["part"] == BY_ROUND) & (frame["status"] == OK)
    for name, runs in frame[is_of_rounds].groupby("dataset", sort=False):
        longest = runs.loc[runs["round"].idxmax()]
        settings = {
            "rows": models.rows_of_set(str(name), options),
            "round": int(longest["round"]),
        }
        for step in range(1, int(longest["steps"]) + 1):
            yield Run(
                str(name),
                MKC,
                0,
                parameters={"step": step},
                protocol=PAPER,
                part=BY_STEP,
                settings=settings,
            )


def compute(run: Run) -> dict[str, Any]:
    """Measure a fit, or one of its cutting planes and the seconds up to it."""
    name = run.dataset
    rows = run.settings["rows"]
    data = models.load_set(name, rows)
    if run.part == BY_STEP:
        step = steps_of(name, rows, run.settings["round"])[run.parameters["step"] - 1]
        return protocol.facts(data.X) | step
    if run.part == BY_ROUND:
        model = as_published(name, rows, max_rounds=run.parameters["round"])
    else:
        model = as_published(name, rows, eta=run.parameters["eta"])
    return protocol.scored(data, model, models.scores) | {"steps": len(model.history_)}


@lru_cache(maxsize=1)
def steps_of(name: str, rows: int | None, rounds: int) -> list[dict[str, float]]:
    """Return the violation and the elapsed seconds at each cutting plane of a fit.

    The violation at a cutting plane is the violation of the next constraint. The last
    fit is cached.
    """
    model = as_published(name, rows, max_rounds=rounds)
    protocol.fit(model, models.load_set(name, rows).X)
    steps = model.history_[["violation", "seconds"]].clip(lower=0)
    return steps.astype(float).to_dict("records")


def as_published(name: str, rows: int | None, **limits: Any) -> Any:
    """Return MKC with one kernel of each kind, as in the paper.

    The fit starts from random labels, at once with a large C, and has the threshold 1.
    """
    kernels = []
    for kernels_of_kind in models.base_kernels(models.sigma0_of(name, rows)).values():
        kernels.append(next(iter(kernels_of_kind.values())))
    form = models.FORM | models.FLIP | {"basis": "exact", "random_state": 0}
    return estimator(MULTIPLE, kernels=kernels, **form, **limits)


def tables(frame: pd.DataFrame) -> Result:
    """Return a line for each round, cutting plane or number of rows.

    Each data set or precision has a column.
    """
    axes = {
        BY_ROUND: ("round", "dataset", ACCURACY),
        BY_STEP: ("step", "dataset", "violation"),
        OF_TIME: ("rows", "eta", "seconds"),
    }
    tables = {}
    for part, runs in frame[frame["status"] == OK].groupby("part", sort=False):
        index, columns, values = axes[str(part)]
        table = runs.pivot(index=index, columns=columns, values=values)
        table = table[runs[columns].unique()].reset_index()
        name = f"mkc-{part}".replace(", ", "-")
        tables[name] = table.rename_axis(columns=None).rename(columns=str)
    return Result(tables)
