"""Label-free choice of the width: its error beside the best width, a fixed width, and k-means.

``python -m benchmarks widths [--quick] [--seeds N]`` fits k-means, the default (``gamma="auto"``) and each
width of a grid on the UCI sets and pairs of digits of optdigits and MNIST. The excess of a choice is its
error less that at the best width, which is found with the known classes; the second table gives mean and
worst. ``--quick`` leaves MNIST out.
"""

from __future__ import annotations

import pandas as pd

from benchmarks._common import MNIST_PAIRS, UCI, Options, Result, load
from benchmarks._compare import FIXED_WIDTH, compare, medians, summarise, warm_up

OPTDIGITS_PAIRS = tuple(name.replace("mnist", "optdigits") for name in MNIST_PAIRS)
CHOICES = {
    'gamma="auto"': "default error",
    f"width {FIXED_WIDTH:g}": f"width {FIXED_WIDTH:g} error",
    "k-means": "k-means error",
}


def run(options: Options) -> Result:
    """Run the study.

    Parameters
    ----------
    options : Options
        From the command line.

    Returns
    -------
    Result
        Tables; the study has no goal.
    """
    groups = {"UCI": UCI, "optdigits": OPTDIGITS_PAIRS}
    if not options.quick:
        groups["MNIST"] = MNIST_PAIRS
    frames = []
    for group, names in groups.items():
        for name in names:
            data = load(name, options)
            compiled = warm_up(data.X)
            frames.append(
                compare(data, range(options.seeds or 3)).assign(group=group, compile_seconds=compiled)
            )
    frame = pd.concat(frames)
    facts = summarise(frame)
    facts.insert(
        0, "group", facts["dataset"].map(frame.drop_duplicates("dataset").set_index("dataset")["group"])
    )
    facts = facts[[name for name in facts.columns if "seconds" not in name and " / " not in name]]
    tables = {
        "widths-fits": frame,
        "widths-by-width": medians(frame),
        "widths": facts,
        "widths-excess": _excess(facts),
    }
    return Result(tables, shown=("widths", "widths-excess"))


def _excess(facts: pd.DataFrame) -> pd.DataFrame:
    """Mean and worst excess error of each choice, in each group and in all."""
    rows = []
    for group, part in [*facts.groupby("group", sort=False), ("all", facts)]:
        for choice, column in CHOICES.items():
            excess = part[column] - part["best error"]
            rows.append(
                {
                    "group": group,
                    "choice": choice,
                    "mean excess error": excess.mean(),
                    "worst excess error": excess.max(),
                    "worst on": part.loc[excess.idxmax(), "dataset"],
                }
            )
    return pd.DataFrame(rows)
