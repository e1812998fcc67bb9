"""Part ``texts`` of ``columns``: the step of texts beside numbers, from the sample or the same for all tables.

Synthetic tables have 1, 3 or 8 columns of numbers and 2, 6 or 20 columns of texts with
2 to 6 values. Four clusters are in the numbers, in half of the texts, or in both.
"""

from itertools import product
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd

from benchmarks.methods import FRONT_DOOR, estimator
from benchmarks.protocol import Data, facts, timed
from benchmarks.run import OK, Options, Run, Runs, frame_of_runs
from benchmarks.studies.peers import with_noise
from benchmarks.tables import Result

AUTO = "auto"
STEPS = (AUTO, "0.35", "0.5", "0.7", "1.0")
NUMBERS = (1, 3, 8)
TEXTS = (2, 6, 20)
PLACES = ("both", "texts", "numbers")
ROWS = 3000
QUICK_ROWS = 2000
DRAWS = 10
CLUSTERS = 4
# Standard deviation of the positions of clusters, in standard deviations of a cluster.
SPREAD = 2.0
PREFERENCE = 0.6  # share of a cluster that has the cluster's value of a text
WORDS = np.array(list("abcdef"))


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield each step for each kind of table."""
    rows = options.rows or options.pick(ROWS, QUICK_ROWS, 200)
    kinds = product(NUMBERS, TEXTS, PLACES, options.repeats(DRAWS, 2), STEPS)
    for n_numbers, n_texts, place, seed, step in kinds:
        yield Run(
            f"{n_numbers}-{n_texts}-{place}",
            FRONT_DOOR,
            seed,
            parameters={"step": step},
            part="texts",
            settings={
                "rows": rows,
                "numbers": n_numbers,
                "texts": n_texts,
                "place": place,
            },
        )


def compute(run: Run) -> dict[str, Any]:
    """Fit the default to a table with one step for its texts."""
    settings = run.settings
    data = made(
        settings["rows"],
        settings["numbers"],
        settings["texts"],
        settings["place"],
        run.seed,
    )
    step = run.parameters["step"]
    scale: Any = AUTO
    if step != AUTO:
        names = [name for name in data.X if name.startswith("text")]
        scale = dict.fromkeys(names, float(step))
    model = estimator(FRONT_DOOR, CLUSTERS, scale=scale, random_state=run.seed)
    measures = timed(model, data.X) | with_noise(data.y, model.labels_)
    return facts(np.asarray(data.X["number_0"])[:, None]) | measures


def made(n: int, n_numbers: int, n_texts: int, place: str, seed: int) -> Data:
    """Draw a table with clusters in its numbers, in every second text, or in both."""
    draw = np.random.default_rng([n_numbers, n_texts, crc32(place.encode()), seed])
    y = draw.integers(0, CLUSTERS, n)
    columns: dict[str, np.ndarray] = {}
    for k in range(n_numbers):
        centers = SPREAD * draw.normal(size=CLUSTERS)
        values = draw.normal(size=n)
        if place != "texts":
            values += centers[y]
        columns[f"number_{k}"] = 50 + values * np.exp(draw.normal())
    for k in range(n_texts):
        n_words = int(draw.integers(2, len(WORDS) + 1))
        shares = draw.dirichlet(np.full(n_words, 3.0))
        words = draw.choice(n_words, n, p=shares)
        usual = draw.permutation(np.arange(max(n_words, CLUSTERS)) % n_words)
        if place != "numbers" and k % 2 == 0:
            is_usual = draw.random(n) < PREFERENCE
            words = np.where(is_usual, usual[y], words)
        columns[f"text_{k}"] = WORDS[words]
    return Data(place, pd.DataFrame(columns), y)


def tables(frame: pd.DataFrame) -> Result:
    """Return means by table and step, and the effect of the rule by where the clusters are."""
    frame = frame[frame["status"] == OK]
    kind = frame["dataset"].str.split("-", expand=True)
    frame = frame.assign(numbers=kind[0], texts=kind[1], clusters=kind[2])
    keys = ["numbers", "texts", "clusters"]
    means = frame.pivot_table("ari", keys, "step", "mean", sort=False)
    draws = frame.pivot_table("ari", [*keys, "seed"], "step", sort=False)
    gain = draws[AUTO] - draws["0.35"]
    by_place = gain.groupby(["clusters", "seed"], sort=False).mean()
    by_place = by_place.groupby("clusters", sort=False)
    half = 1.96 * by_place.std() / np.sqrt(by_place.size())
    changes = pd.DataFrame(
        {
            "draws": by_place.size(),
            "gain": by_place.mean(),
            "low": by_place.mean() - half,
            "high": by_place.mean() + half,
        }
    )
    return Result(
        {
            "columns-texts": means[list(STEPS)].reset_index(),
            "columns-texts-gain": changes.reset_index(),
        }
    )
