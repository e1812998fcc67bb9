"""Part ``surveys`` of ``columns``: answers as numbers, texts and ordered texts, with and without known scales."""

from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import pandas as pd

import mmcnb
from benchmarks.methods import FRONT_DOOR, estimator
from benchmarks.protocol import Data, compile_seconds, load_once, timed
from benchmarks.run import OK, Options, Run, Runs, frame_of_runs
from benchmarks.studies.peers import with_noise
from benchmarks.tables import Result

ROWS = 2000
ANSWERS = ("strongly disagree", "disagree", "neutral", "agree", "strongly agree")
# How a table is read: as mmcnb reads it, or as if it did not know rating scales.
SCALES_KNOWN = "scales"
NO_SCALES = "no scales"
NUMBERS = "numbers"
TEXTS = "texts"
ORDERED = "ordered"
STEP = 0.35  # standard deviation of a column of few values
REAL = ("dermatology", "heart")


class Survey(NamedTuple):
    """A synthetic survey: the numbers of its questions and classes, and a seed."""

    n_questions: int
    n_classes: int
    draw: int

    @property
    def name(self) -> str:
        """Name in the tables."""
        return f"survey-{self.n_questions}-{self.n_classes}-{self.draw}"


MADE = [
    Survey(questions, classes, draw)
    for questions, classes in ((4, 4), (8, 4), (20, 4), (20, 6))
    for draw in range(2)
]
OF_TEXTS = [Survey(23, 4, draw) for draw in range(4)]


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield synthetic surveys, also as texts, and real tables, with and without known scales."""
    rows = min(options.rows or ROWS, ROWS)
    tries = [(survey.name, NUMBERS) for survey in MADE]
    tries += [
        (survey.name, form)
        for survey, form in product(OF_TEXTS, (NUMBERS, TEXTS, ORDERED))
    ]
    tries += [(name, NUMBERS) for name in REAL]
    tries = options.pick(tries, tries, tries[:1])
    ways = (SCALES_KNOWN, NO_SCALES)
    for (name, form), way, seed in product(tries, ways, options.repeats(3)):
        parameters = {"answers": form, "read": way}
        yield Run(name, FRONT_DOOR, seed, parameters, settings={"rows": rows})


def compute(run: Run) -> dict[str, Any]:
    """Fit the default to one survey, with the number of its classes."""
    form = run.parameters["answers"]
    data = survey_of(run.dataset, run.settings["rows"])
    X: Any = written(data.X, form)
    scale: Any = "auto"
    if run.parameters["read"] == NO_SCALES:
        scale, X = without_scales(X)
    n_clusters = int(np.unique(data.y).size)
    model = estimator(FRONT_DOOR, n_clusters, scale=scale, random_state=run.seed)
    numbers = data.X.to_numpy(np.float64)
    measures: dict[str, Any] = {"compile_seconds": compile_seconds(numbers, model)}
    measures |= timed(model, X)
    return measures | with_noise(data.y, np.asarray(model.labels_))


@lru_cache(maxsize=2)
def survey_of(name: str, rows: int) -> Data:
    """Return a frame of whole numbers and other columns, and its classes."""
    if name in REAL:
        data = load_once(name, rows)
        return Data(name, pd.DataFrame(data.X).add_prefix("x"), data.y)
    return Data(name, *made_survey(Survey(*map(int, name.split("-")[1:])), rows))


def made_survey(survey: Survey, rows: int = ROWS) -> tuple[pd.DataFrame, np.ndarray]:
    """Draw answers from 1 to 5, an age, and a score from 0 to 10.

    The mean answers of the classes to a question have standard deviation 1, and so have
    the answers of a class. The age and the score depend little on the class.

    Examples
    --------
    >>> from benchmarks.studies._columns_surveys import Survey, made_survey
    >>> frame, y = made_survey(Survey(4, 3, 0), 50)
    >>> frame.shape, sorted(frame["q00"].unique().tolist())
    ((50, 6), [1, 2, 3, 4, 5])
    """
    draw = np.random.default_rng(crc32(survey.name.encode()))
    k = survey.n_classes
    shares = draw.uniform(0.35, 1, k)
    y = draw.choice(k, rows, p=shares / shares.sum())
    shape = rows, survey.n_questions
    means = 3 + draw.standard_normal((k, survey.n_questions))
    answers = np.clip(np.rint(means[y] + draw.standard_normal(shape)), 1, 5)
    names = [f"q{number:02d}" for number in range(survey.n_questions)]
    frame = pd.DataFrame(answers.astype(int), columns=names)
    age = 44 + draw.normal(0, 4, k)[y] + draw.normal(0, 14, rows)
    score = 6 + draw.normal(0, 1.5, k)[y] + draw.normal(0, 1.5, rows)
    frame["age"] = np.clip(np.rint(age), 18, 90).astype(int)
    frame["score"] = np.clip(np.rint(score), 0, 10).astype(int)
    return frame, y


def written(frame: pd.DataFrame, form: str) -> pd.DataFrame:
    """Return a frame in which the answers are texts, which may be ordered.

    Examples
    --------
    >>> import pandas as pd
    >>> from benchmarks.studies._columns_surveys import written
    >>> written(pd.DataFrame({"q00": [1, 5]}), "texts")["q00"].tolist()
    ['strongly disagree', 'strongly agree']
    """
    if form == NUMBERS:
        return frame
    columns = {}
    for name in frame.columns[frame.columns.str.startswith("q")]:
        answers = np.array(ANSWERS, object)[frame[name] - 1]
        columns[name] = answers
        if form == ORDERED:
            columns[name] = pd.Categorical(answers, ANSWERS, ordered=True)
    return frame.assign(**columns)


def without_scales(frame: pd.DataFrame) -> tuple[Any, Any]:
    """Return the treatment of columns with few numbers, and rows whose texts have no order."""
    numbers = frame.select_dtypes("number")
    few = [name for name in numbers if frame[name].nunique() <= 5]
    scale: Any = dict.fromkeys(few, STEP) or "auto"
    if len(few) == len(frame.columns):
        scale = None  # these columns only have few values
    if numbers.shape[1] == frame.shape[1]:
        return scale, frame
    return scale, mmcnb.read_table(frame, categories="one-hot")


def tables(frame: pd.DataFrame) -> Result:
    """Return the mean index by kind of survey, with a column for each way to read it."""
    frame = frame[frame["status"] == OK]
    is_text = frame["dataset"].str.startswith("survey-23")
    kinds = frame["dataset"].where(frame["dataset"].isin(REAL), "eight surveys")
    kinds = kinds.mask(is_text, "23 questions, " + frame["answers"])
    means = frame.assign(kind=kinds).pivot_table(
        "ari", "kind", "read", "mean", sort=False
    )
    each = frame.pivot_table(
        "ari", ["dataset", "answers"], "read", "mean", sort=False
    ).reset_index()
    return Result(
        {"columns-surveys": means.reset_index(), "columns-each-survey": each},
        shown=("columns-surveys",),
    )
