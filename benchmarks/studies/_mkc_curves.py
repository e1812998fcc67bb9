"""Curves of the thesis: accuracy by round, violation by cutting plane, time against rows and epsilon."""

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
    """Fits that end after each number of rounds, and fits of each size and precision."""
    rounds = options.pick(ROUNDS, QUICK_ROUNDS, SMOKE_ROUNDS)
    for name, count in product(
        options.pick(NAMES, NAMES, NAMES[:1]), range(1, rounds + 1)
    ):
        rows = {"rows": models.rows_of_set(name, options)}
        yield Run(
            name,
            MKC,
            0,
            parameters={"round": count},
            protocol=PAPER,
            part=BY_ROUND,
            settings=rows,
        )
    sizes = options.sizes_within(options.pick(SIZES, QUICK_SIZES, QUICK_SIZES))
    for n, eta in product(sizes, options.pick(ETAS, QUICK_ETAS, QUICK_ETAS)):
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
    """Each cutting plane of the fits of the most rounds."""
    done = frame[(frame["part"] == BY_ROUND) & (frame["status"] == OK)]
    for name, rows in done.groupby("dataset", sort=False):
        last = rows.loc[rows["round"].idxmax()]
        settings = {
            "rows": models.rows_of_set(str(name), options),
            "round": int(last["round"]),
        }
        for step in range(1, int(last["steps"]) + 1):
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
    """Accuracy of a fit and its seconds, or its violation at one cutting plane and the seconds until then."""
    name = run.dataset
    rows = run.settings["rows"]
    data = models.load_set(name, rows)
    if run.part == BY_STEP:
        violation, seconds = steps_of(name, rows, run.settings["round"])[
            run.parameters["step"] - 1
        ]
        return protocol.facts(data.X) | {"violation": violation, "seconds": seconds}
    given = (
        {"max_rounds": run.parameters["round"]}
        if run.part == BY_ROUND
        else {"eta": run.parameters["eta"]}
    )
    model = as_published(name, rows, **given)
    return protocol.scored(data, model, models.scores) | {"steps": len(model.history_)}


@lru_cache(maxsize=1)
def steps_of(name: str, rows: int | None, rounds: int) -> list[tuple[float, float]]:
    """Violation of the next constraint, and seconds so far, at each cutting plane of the kept fit."""
    model = protocol.fit(
        as_published(name, rows, max_rounds=rounds), models.load_set(name, rows).X
    )
    steps = model.history_[["violation", "seconds"]].clip(lower=0)
    return [
        (float(violation), float(seconds)) for violation, seconds in steps.to_numpy()
    ]


def as_published(name: str, rows: int | None, **given: Any) -> Any:
    """MKC of one kernel of each kind from a coin flip, directly at a large C and the threshold of 1."""
    kinds = models.base_kernels(models.sigma0_of(name, rows)).values()
    kernels = [next(iter(kind.values())) for kind in kinds]
    form = models.FORM | models.FLIP | {"basis": "exact", "random_state": 0}
    return estimator(MULTIPLE, kernels=kernels, **form, **given)


def tables(frame: pd.DataFrame) -> Result:
    """A line for each round, cutting plane or number of rows; a column for each set or precision."""
    wide = {
        BY_ROUND: ("round", "dataset", ACCURACY),
        BY_STEP: ("step", "dataset", "violation"),
        OF_TIME: ("rows", "eta", "seconds"),
    }
    found = {}
    for part, rows in frame[frame["status"] == OK].groupby("part", sort=False):
        index, columns, values = wide[str(part)]
        table = rows.pivot(index=index, columns=columns, values=values)[
            rows[columns].unique()
        ]
        name = f"mkc-{part}".replace(", ", "-")
        found[name] = table.reset_index().rename_axis(columns=None).rename(columns=str)
    return Result(found)
