"""Compare the times of a commit and of this tree, in fits, passes and routines that take turns.

    python -m benchmarks.compare HEAD~1 [--turns 7] [--work NAME ...] [--most 1.2]

The commit is checked out into a temporary folder. Each piece of work runs in two
processes, one for each tree. Both run it once to compile, and then take turns. "ratio"
is the median over the turns of the processor time of this tree divided by that of the
commit; processor time depends less on other work than wall time. If it is below 1, this
tree is faster. "of wall" is the ratio of the wall times. With ``--most``, the exit
status is 1 if a ratio is larger. Before the table, the files with compiled routines
that differ are listed, because users of the later code compile these routines again.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pandas as pd

import mmcnb
from benchmarks.tables import plain

ROOT = Path(__file__).parents[1]
# Script of a process that prepares `work`, runs it for each line on standard input, and
# prints the seconds.
PROCESS = """
import json, sys, time, warnings
import numpy as np
import mmcnb
from mmcnb.datasets import make_block

warnings.simplefilter("ignore")
{preparation}
work()
for _ in sys.stdin:
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    print(json.dumps([time.process_time() - cpu, time.perf_counter() - wall]), flush=True)
"""
FIT = """
X = {rows}
work = lambda: mmcnb.{estimator}.fit(X)
"""
BLOBS = 'make_block("blobs", 0, {rows}, {features}, n_clusters={k})[0]'
A9A = 'mmcnb.datasets.load("a9a")[0]'
DEFAULT = "MaximumMarginClustering(2, random_state=0, n_jobs=1)"
LEAST_SQUARES = "UnsupervisedRLS({k}, random_state=0, n_jobs=1)"
PREDICT = """
import shutil, tempfile
from mmcnb.datasets import write_synthetic

kept = tempfile.TemporaryDirectory()  # goes with the process
folder = kept.name
write_synthetic("blobs", folder + "/rows.zarr", {rows}, 50)
model = mmcnb.{estimator}
model.fit(make_block("blobs", 0, {fitted}, 50)[0])


def work():
    model.predict(folder + "/rows.zarr", out=folder + "/labels.zarr")
    shutil.rmtree(folder + "/labels.zarr")
"""
CONVERT = """
import tempfile
import pandas as pd
from mmcnb.stores import convert

kept = tempfile.TemporaryDirectory()  # goes with the process
path = kept.name + "/rows.csv"
rng = np.random.default_rng(0)
frame = pd.DataFrame(rng.normal(size=({rows}, 20 - {texts})).round(4)).add_prefix("x")
for k in range({texts}):
    frame["t" + str(k)] = rng.choice(["red", "green", "blue", "yellow"], {rows})
frame.to_csv(path, index=False)
work = lambda: convert(path, kept.name + "/rows.zarr", overwrite=True, progress=False)
"""
ROUTINE = """
from mmcnb import kernels

rng = np.random.default_rng(0)
X = rng.standard_normal((16384, 64)).astype(np.float32)
B, out = X[:200].copy(), np.empty((16384, 200), np.float32)
labels = np.arange(1500) % 2
Z = rng.standard_normal((1500, 40))
R = np.ascontiguousarray(Z @ np.linalg.solve(Z.T @ Z + 150 * np.eye(40), Z.T))
work = lambda: {call}
"""
WORK = {
    "default fit, 1,500 x 30": FIT.format(
        rows=BLOBS.format(rows=1500, features=30, k=2), estimator=DEFAULT
    ),
    "default fit, a9a": FIT.format(rows=A9A, estimator=DEFAULT),
    "hinge, a9a": FIT.format(
        rows=A9A, estimator="SparseKernelMMC(random_state=0, n_jobs=1)"
    ),
    "least squares, 20,000 x 50, 10 clusters": FIT.format(
        rows=BLOBS.format(rows=20000, features=50, k=10),
        estimator=LEAST_SQUARES.format(k=10),
    ),
    "the graph alone, 20,000 x 50, 10 clusters": FIT.format(
        rows=BLOBS.format(rows=20000, features=50, k=10),
        estimator='MaximumMarginClustering(10, kernel="graph", random_state=0, n_jobs=1)',
    ),
    "default fit, 20,000 x 50, 10 clusters, two threads": FIT.format(
        rows=BLOBS.format(rows=20000, features=50, k=10),
        estimator="MaximumMarginClustering(10, random_state=0, n_jobs=2)",
    ),
    "predict, 500,000 x 50 of a store": PREDICT.format(
        rows=500_000,
        fitted=5000,
        estimator="UnsupervisedRLS(2, gamma=0.01, random_state=0, n_jobs=1)",
    ),
    "predict on the graph, 50,000 x 50 of a store": PREDICT.format(
        rows=50_000,
        fitted=20_000,
        estimator='MaximumMarginClustering(2, kernel="graph", random_state=0, n_jobs=1)',
    ),
    "convert, numbers": CONVERT.format(rows=1_000_000, texts=0),
    "convert, half texts": CONVERT.format(rows=1_000_000, texts=10),
    "rbf_kernel_block_into": ROUTINE.format(
        call="kernels.rbf_kernel_block_into(X, B, 0.01, out)"
    ),
    "shake": ROUTINE.format(
        call="kernels.shake(R, labels, np.full(2, 0.5), 1.0, 0.5, 21)"
    ),
    "steepest_moves": ROUTINE.format(
        call="kernels.steepest_moves(R, labels, np.full(2, 1), np.full(2, 1500), 5000, True)"
    ),
}


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """Check out the files of a commit into a folder."""
    git = ["git", "-C", str(ROOT)]
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "commit")
        words = [*git, "worktree", "add", "--detach", str(tree), commit]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            raise mmcnb.InputError(
                f"{commit} is not a commit of this checkout: {done.stderr.strip()!r}."
            )
        try:
            yield tree
        finally:
            subprocess.run(
                [*git, "worktree", "remove", "--force", str(tree)], check=True
            )


def ratios(there: Path, names: Sequence[str], turns: int) -> pd.DataFrame:
    """Return median seconds of each piece of work in both trees, and median ratios of the turns.

    Parameters
    ----------
    there : Path
        Folder of the other tree; the caches of compiled routines are written beside it.
    names : sequence of str
        Keys of `WORK`.
    turns : int
        Number of turns that are measured.

    Returns
    -------
    DataFrame
        One row per piece of work.
    """
    trees = {"here": ROOT, "there": there}
    rows = []
    for name in names:
        with ExitStack() as stack:
            processes = [
                stack.enter_context(
                    _process(tree, there.parent / f"cache-{which}", WORK[name])
                )
                for which, tree in trees.items()
            ]
            seconds = np.array(
                [[_turn(process) for process in processes] for _ in range(turns)]
            )
        here, other = np.median(seconds[:, :, 0], axis=0)
        cpu, wall = np.median(seconds[:, 0] / seconds[:, 1], axis=0)
        rows.append(
            {"work": name, "here": here, "there": other, "ratio": cpu, "of wall": wall}
        )
    return pd.DataFrame(rows)


def changed_kernels(there: Path) -> list[str]:
    """Return the files with compiled routines that differ from those of other code.

    Parameters
    ----------
    there : Path
        Folder of the other code.
    """
    paths = [path.relative_to(ROOT) for path in sorted(ROOT.glob("mmcnb/**/*.py"))]
    changed = []
    for path in paths:
        text = (ROOT / path).read_text(encoding="utf-8")
        other = there / path
        is_equal = other.exists() and other.read_text(encoding="utf-8") == text
        if "@njit" in text and not is_equal:
            changed.append(path.as_posix())
    return changed


def slower(table: pd.DataFrame, most: float) -> list[str]:
    """Return a sentence for each piece of work whose ratio is above a limit.

    Examples
    --------
    >>> import pandas as pd
    >>> from benchmarks.compare import slower
    >>> slower(pd.DataFrame([{"work": "fit", "ratio": 1.31}]), 1.2)
    ['fit takes 1.31 times as long as in the commit; at most 1.2 is allowed.']
    """
    return [
        f"{row['work']} takes {row['ratio']:.2f} times as long as in the commit; at "
        f"most {most:g} is allowed."
        for row in table[table["ratio"] > most].to_dict("records")
    ]


@contextmanager
def _process(
    tree: Path, cache: Path, preparation: str
) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-c", PROCESS.format(preparation=preparation)]
    pipe = subprocess.PIPE
    own = os.environ | {"PYTHONPATH": str(tree), "NUMBA_CACHE_DIR": str(cache)}
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, text=True, cwd=tree, env=own
    ) as process:
        yield process
        process.communicate()


def _turn(process: "subprocess.Popen[str]") -> list[float]:
    """Return processor and wall seconds of one run."""
    assert process.stdin is not None
    assert process.stdout is not None
    print("go", file=process.stdin, flush=True)
    answer = process.stdout.readline()
    if not answer:
        raise mmcnb.InputError(
            "a piece of work ended early; its error is printed above."
        )
    seconds: list[float] = json.loads(answer)
    return seconds


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare and print; return 1 if work is too slow, and 2 if it fails or the commit is unknown."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare")
    parser.add_argument("commit", help="to compare with")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument(
        "--work", nargs="+", choices=[*WORK], default=[*WORK], metavar="NAME"
    )
    parser.add_argument("--most", type=float, default=np.inf, metavar="RATIO")
    options = parser.parse_args(arguments)
    try:
        with checked_out(options.commit) as there:
            kernels = changed_kernels(there)
            print("compiled routines differ in:", ", ".join(kernels) or "no file")
            table = ratios(there, options.work, options.turns)
            print(plain(table))
    except mmcnb.InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    sentences = slower(table, options.most)
    for sentence in sentences:
        print(sentence, file=sys.stderr)
    return 1 if sentences else 0


if __name__ == "__main__":
    sys.exit(main())
