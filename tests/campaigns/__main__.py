"""``python -m tests.campaigns NAME``: attack the library at random, and count what breaks a promise.

Each campaign makes seeded tries: it damages a file, kills a process, makes up an input,
exhausts the memory. A try fails where an answer is wrong, an error is no clear
sentence, or something is lost or left behind.
"""

import argparse
import sys
from pathlib import Path

# Internal: a campaign shows the bar of the library itself.
from mmcnb._progress import progress
from tests.campaigns import runner

CAMPAIGNS = (
    "flips",
    "kills",
    "fuzz",
    "frames",
    "ways",
    "truth",
    "memory",
    "races",
    "hostile",
    "models",
    "routines",
    "dask",
    "changes",
    "errors",
)


def main(arguments: list[str] | None = None) -> int:
    """Run campaigns; 1 where a try failed, 2 where there is no such campaign."""
    words = _parser().parse_args(arguments)
    if words.campaign == "table":
        print(runner.table(CAMPAIGNS, words.out))
        return 0
    if words.campaign not in (*CAMPAIGNS, "all"):
        known = f"choose one of {', '.join(CAMPAIGNS)}, all or table"
        print(f"error: there is no campaign {words.campaign!r}; {known}.")
        return 2
    words.out.mkdir(parents=True, exist_ok=True)
    names = CAMPAIGNS if words.campaign == "all" else (words.campaign,)
    return max([_run(name, words) for name in names])


def _run(name: str, words: argparse.Namespace) -> int:
    module = runner.load(f"tests.campaigns.{name}")
    tries = words.tries or (module.CI_TRIES if words.ci else module.TRIES)
    seeds = range(words.seed, words.seed + tries)
    with progress(tries, name, "tries") as bar:
        frame = runner.run(
            module, seeds, words.jobs, words.minutes, lambda: bar.update(1)
        )
    runner.write(frame, words.out / f"{name}.csv")
    print(runner.summary(name, frame, whole=tries == 1), flush=True)
    return int(frame["failure"].notna().any())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.campaigns", description=__doc__
    )
    parser.add_argument(
        "campaign",
        metavar="NAME",
        help=f"{', '.join(CAMPAIGNS)}, all, or table of their frames",
    )
    parser.add_argument(
        "--tries",
        type=int,
        help="tries of each campaign; by default those of a full run",
    )
    parser.add_argument(
        "--ci", action="store_true", help="a small share of the tries, for every change"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of the first try; each one counts on"
    )
    parser.add_argument(
        "--minutes", type=float, help="start no try of a campaign after that long"
    )
    parser.add_argument("--jobs", type=int, default=1, help="tries made side by side")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("campaigns"),
        help="folder for a CSV file of each campaign",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
