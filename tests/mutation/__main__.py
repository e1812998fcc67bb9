"""How many small faults in the code the tests find.

    python -m tests.mutation --seed 0 --mutants 200 --minutes 60 --out results/mutation

A mutant is a module with one change: another comparison, another sign, a constant one
higher or lower, a condition turned round, a statement dropped. It is killed where one
of the module's tests then fails, and it survives where all of them pass. Mutants are
drawn at random from all changes of all modules in `TESTS`.

Each is tried in a fork of one process that has loaded the libraries and no module of
mmcnb; no file is changed. Kernels run as plain Python, for compiling takes seconds;
those of their tests that need machine code then run on what survived. Only tests that
enter the changed function run, the quickest first. Survivors that no test could find
are in `equivalent.csv`, each with the reason, and do not count.
"""

import argparse
import csv
import importlib
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Collection
from functools import cache, partial
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

from tests.mutation.mutants import ROOT, Mutant, code_that_tells, mutants, source

EQUIVALENT = Path(__file__).parent / "equivalent.csv"
TWINS = "tests/kernels/test_twins.py tests/kernels/test_checks.py"
CHECKPOINT = "tests/engine/test_checkpoint.py tests/estimators/test_checkpoint.py"
WRITING = "tests/samples/test_write.py tests/samples/test_metadata.py tests/samples/test_chunk_files.py"
TESTS = {
    "mmcnb.kernels._checks": "tests/kernels/test_checks.py",
    "mmcnb.kernels.cone": f"tests/kernels/test_own_code.py {TWINS}",
    "mmcnb.kernels.landmarks": f"tests/kernels/test_landmarks.py {TWINS}",
    "mmcnb.kernels.losses": TWINS,
    "mmcnb.kernels.evolution": f"tests/kernels/test_evolution.py {TWINS}",
    "mmcnb.kernels.pairwise": f"tests/kernels/test_pairwise.py {TWINS}",
    "mmcnb.kernels.moves": f"tests/kernels/test_moves.py {TWINS}",
    "mmcnb.kernels.neighbours": f"tests/kernels/test_neighbours.py {TWINS}",
    "mmcnb.kernels.runner_up": f"tests/kernels/test_runner_up.py {TWINS}",
    "mmcnb.kernels.sizes": f"tests/kernels/test_sizes.py {TWINS}",
    "mmcnb.kernels.cutting_plane": f"tests/kernels/test_sweeps.py tests/kernels/test_subproblem.py {TWINS}",
    "mmcnb.kernels.planes": f"tests/kernels/test_sweeps.py {TWINS}",
    "mmcnb.hinge.cutting_plane": "tests/hinge/test_cutting_plane.py tests/hinge/test_cccp.py "
    "tests/hinge/test_own_basis.py",
    "mmcnb.hinge.qp": "tests/hinge/test_qp.py tests/hinge/test_socp.py",
    "mmcnb.least_squares.partition": "tests/least_squares",
    "mmcnb.graph.neighbours": "tests/graph/test_neighbours.py",
    "mmcnb.graph.communities": "tests/graph/test_communities.py tests/choice/test_merge_tree.py",
    "mmcnb.graph.genie": "tests/graph/test_genie.py",
    "mmcnb.graph.layout": "tests/graph/test_layout.py",
    "mmcnb.graph.axes": "tests/graph",
    "mmcnb.graph.inverted_file": "tests/graph",
    "mmcnb.graph.merge_tree": "tests/choice/test_merge_tree.py",
    "mmcnb.graph.nodes": "tests/graph",
    "mmcnb.graph.sparse_nodes": "tests/graph",
    "mmcnb.graph.vote": "tests/graph/test_vote.py",
    "mmcnb.graph.vote_file": "tests/graph tests/choice/test_merge_tree.py",
    "mmcnb.graph._genie": "tests/graph/test_genie.py",
    "mmcnb.graph._layout": "tests/graph/test_layout.py",
    "mmcnb.graph._louvain": "tests/graph/test_communities.py tests/choice/test_merge_tree.py",
    "mmcnb.choice.candidates": "tests/choice/test_candidates.py",
    "mmcnb.choice.judge": "tests/choice/test_judge.py",
    "mmcnb.choice.known": "tests/choice/test_known.py",
    "mmcnb.choice.match": "tests/choice/test_match.py",
    "mmcnb.choice.inner_splits": "tests/choice/test_number.py",
    "mmcnb.choice.no_structure": "tests/choice/test_number.py",
    "mmcnb.choice.number": "tests/choice/test_number.py tests/choice/test_merge_tree.py",
    "mmcnb.choice.persistence": "tests/choice/test_persistence.py",
    "mmcnb.choice.surrogate": "tests/choice/test_surrogate.py",
    "mmcnb.choice.structure": "tests/choice/test_number.py",
    "mmcnb.choice.pick": "tests/choice/test_pick.py",
    "mmcnb.choice.trust": "tests/choice/test_trust.py",
    "mmcnb.choice.read_known": "tests/estimators/test_known_rows.py",
    "mmcnb.choice.search": "tests/choice/test_search.py",
    "mmcnb.choice.small": "tests/choice/test_small.py",
    "mmcnb.stores._convert": f"tests/samples/test_convert.py {WRITING}",
    "mmcnb.stores.label_table": "tests/estimators/test_outputs.py tests/cli/test_score.py "
    "tests/cli/test_fit_predict.py tests/cli/test_refusals.py",
    "mmcnb.stores.labels": f"tests/estimators/test_outputs.py tests/cli/test_score.py {WRITING}",
    "mmcnb.stores.report": f"tests/samples/test_damage.py {WRITING}",
    "mmcnb.stores._write": f"{WRITING} tests/samples/test_convert.py tests/samples/test_raw_tables.py",
    "mmcnb.stores.archive": "tests/estimators/test_model_file.py",
    "mmcnb.stores.atomic": f"tests/samples/test_atomic.py tests/samples/test_exchanged.py {WRITING}",
    "mmcnb.stores.leftovers": f"tests/samples/test_atomic.py {WRITING}",
    "mmcnb.columns.kinds": "tests/columns",
    "mmcnb.columns.treatment": "tests/columns",
    "mmcnb.columns.single": "tests/columns",
    "mmcnb.least_squares.all_rows": "tests/least_squares "
    "tests/estimators/test_unsupervised_rls.py tests/estimators/test_sample_weights.py",
    "mmcnb.engine.checkpoint": CHECKPOINT,
    "mmcnb.engine.entries": CHECKPOINT,
}
LIBRARIES = "hypothesis numba numpydoc.docscrape pandas pytest scipy.sparse.linalg sklearn.pipeline sklearn.svm zarr"
# of processor time and of memory: a mutant that takes more has failed
SECONDS = 30
BYTES = 8 * 2**30


class Recorder:
    """A plugin of pytest that picks tests, and records of each how it ended, its time and its calls."""

    def __init__(self, module: str, wanted: Collection[str] | None) -> None:
        self.module = module
        self.order = (
            None
            if wanted is None
            else {name: place for place, name in enumerate(wanted)}
        )
        self.tests: dict[str, dict[str, Any]] = {}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Keep the tests that are wanted, in their order."""
        items[:] = [item for item in items if concerns(item.nodeid, self.module)]
        if self.order is not None:
            kept = [item for item in items if item.nodeid in self.order]
            items[:] = sorted(kept, key=lambda item: self.order[item.nodeid])

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Record one phase of a test."""
        test = self.tests.setdefault(
            report.nodeid, {"passed": True, "ran": False, "seconds": 0.0}
        )
        test["passed"] &= not report.failed
        test["ran"] |= report.when == "call" and report.passed
        test["seconds"] += report.duration
        test["entered"] = sorted(sys.entered)
        if report.when == "teardown":
            sys.entered.clear()


def _in_fork(action: Callable[[], Any], seconds: float) -> Any:
    """What a function gives in a process of its own; None where the process ended before it."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder, "answer")
        child = os.fork()
        if child == 0:
            os.setsid()
            tempfile.tempdir = folder
            for stream in (1, 2):
                os.dup2(
                    os.open(
                        Path(folder, "said"), os.O_WRONLY | os.O_CREAT | os.O_APPEND
                    ),
                    stream,
                )
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 1))
            resource.setrlimit(resource.RLIMIT_DATA, (BYTES, BYTES))
            try:
                answer.write_text(json.dumps(action()))
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                os._exit(0)
        end = time.monotonic() + 20 * seconds
        while os.waitpid(child, os.WNOHANG) == (0, 0):
            if time.monotonic() > end:
                os.killpg(child, signal.SIGKILL)
            time.sleep(0.05)
        return json.loads(answer.read_text()) if answer.exists() else None


def _run_tests(
    module: str,
    code: CodeType | None,
    compiled: bool,
    wanted: Collection[str] | None,
    *options: str,
) -> dict[str, dict[str, Any]]:
    """Run tests of a module whose code may be another: those that are wanted, or all."""
    import numba  # noqa: TID251  whether it compiles is decided here
    import numpy as np
    import pytest

    get_code = SourceFileLoader.get_code
    SourceFileLoader.get_code = lambda self, name: (
        (name == module and code) or get_code(self, name)
    )
    if is_kernel(module):
        numba.config.DISABLE_JIT = not compiled
        # the cache knows a function by its file, not by its code
        numba.config.CACHE_DIR = tempfile.mkdtemp()
        np.seterr(**{} if compiled else {"all": "ignore"})  # as machine code does
    sys.entered = set()
    recorder = Recorder(module, wanted)
    # Plain assertions: with others, pytest would read the files that it is given
    # itself.
    fixed = [
        "-q",
        "--tb=no",
        "--assert=plain",
        "-p",
        "no:cacheprovider",
        "-m",
        "not nightly",
    ]
    files = [*TESTS[module].split(), str(source(module).relative_to(ROOT))]
    status = pytest.main([*fixed, *options, *files], plugins=[recorder])
    if status not in (0, 1):  # nothing could be collected
        return {"the import": {"passed": False, "ran": False}}
    return recorder.tests


def is_kernel(module: str) -> bool:
    """Whether a module is compiled."""
    return module.startswith(
        ("mmcnb.kernels", "mmcnb.graph._")
    ) and not module.endswith("_checks")


@cache
def tests_of(module: str) -> list[tuple[bool, dict[str, dict[str, Any]]]]:
    """The tests that pass, as plain Python and then the others as machine code, the quickest first."""
    found = []
    left = None
    for compiled in (False, True) if is_kernel(module) else (True,):
        code = None if compiled and is_kernel(module) else code_that_tells(module)
        tests = _in_fork(partial(_run_tests, module, code, compiled, left), 3600)
        passed = {
            name: test for name, test in tests.items() if test["ran"] and test["passed"]
        }
        quickest = sorted(passed, key=lambda name: passed[name]["seconds"])
        found.append((compiled, {name: passed[name] for name in quickest}))
        left = [name for name, test in tests.items() if not test["passed"]]
        if not left:
            break
    return found


def concerns(test: str, module: str) -> bool:
    """Whether a test that goes through all routines does so for one of this module; True for other tests."""
    if not is_kernel(module) or not test.startswith(tuple(TWINS.split())):
        return True
    routine = (
        test.partition("[")[2]
        .rstrip("]")
        .removesuffix("-float32")
        .removesuffix("-float64")
    )
    return f"def {routine}(" in source(module).read_text(encoding="utf-8")


def judge(mutant: Mutant) -> dict[str, Any]:
    """Whether a mutant is killed, and by which test."""
    tried = 0
    for compiled, tests in tests_of(mutant.module):
        # machine code does not tell what it enters
        tells = not (compiled and is_kernel(mutant.module))
        chosen = {
            name: test["seconds"]
            for name, test in tests.items()
            if mutant.function in (0, *test["entered"]) or not tells
        }
        if not chosen:
            continue
        tried += len(chosen)
        run = partial(
            _run_tests, mutant.module, mutant.code(), compiled, list(chosen), "-x"
        )
        ran = _in_fork(run, SECONDS + 5 * sum(chosen.values()))
        failed = (
            ["no end"]
            if ran is None
            else [name for name, test in ran.items() if not test["passed"]]
        )
        if failed:
            return {"result": "killed", "by": failed[0], "tests": tried}
    return {"result": "survived" if tried else "not tested", "by": "", "tests": tried}


def draw(options: argparse.Namespace) -> list[tuple[Mutant, dict[str, Any]]]:
    """The mutants to try, and what is known of those that an earlier run has killed."""
    every = [mutant for module in options.module or TESTS for mutant in mutants(module)]
    if options.again is None:
        chosen = random.Random(options.seed).sample(
            every, min(options.mutants, len(every))
        )
        print(f"{len(chosen)} of {len(every):,} mutants, seed {options.seed}")
        return [(mutant, {}) for mutant in chosen]
    drawn = []
    for row in csv.DictReader(options.again.open(encoding="utf-8")):
        same = [
            one
            for one in every
            if (one.module, one.change) == (row["module"], row["change"])
        ]
        if same:  # the nearest, where lines have moved
            known = (
                {name: row[name] for name in ("result", "by", "tests")}
                if row["result"] == "killed"
                else {}
            )
            drawn.append(
                (min(same, key=lambda one: abs(one.line - int(row["line"]))), known)
            )
    return drawn


def main() -> None:
    """Try mutants and print the score."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutation", description=__doc__.split("\n\n")[0]
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mutants", type=int, default=150)
    parser.add_argument("--minutes", type=float, default=120)
    parser.add_argument(
        "--module",
        action="append",
        choices=[*TESTS],
        help="of this module alone; may be repeated",
    )
    parser.add_argument(
        "--again",
        type=Path,
        metavar="FRAME",
        help="of an earlier run, whose survivors alone are tried",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("mutation-results"), help="folder of the frame"
    )
    options = parser.parse_args()
    for name in LIBRARIES.split():
        importlib.import_module(name)
    import pandas as pd

    equivalent = set(
        pd.read_csv(EQUIVALENT)[["module", "change", "line"]].itertuples(
            index=False, name=None
        )
    )
    options.out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    rows = []
    for mutant, killed in draw(options):
        if time.monotonic() - began > 60 * options.minutes:
            print(f"the time is up after {len(rows)} mutants")
            break
        start = time.monotonic()
        text = (
            source(mutant.module)
            .read_text(encoding="utf-8")
            .splitlines()[mutant.line - 1]
            .strip()
        )
        row = {"module": mutant.module, "line": mutant.line, "change": mutant.change}
        is_known = (mutant.module, mutant.change, text) in equivalent
        row |= (
            {"result": "equivalent", "by": "", "tests": 0}
            if is_known
            else killed or judge(mutant)
        )
        rows.append(row | {"seconds": time.monotonic() - start})
        pd.DataFrame(rows).to_csv(options.out / "mutants.csv", index=False)
        if row["result"] != "killed":
            place = f"{source(mutant.module).relative_to(ROOT)}:{mutant.line}"
            print(f"{row['result']:10}  {place}  {mutant.change}", flush=True)
    frame = pd.DataFrame(rows)
    counts = frame.groupby("module")["result"].value_counts().unstack(fill_value=0)
    counts = counts.reindex(
        columns=["killed", "survived", "not tested", "equivalent"], fill_value=0
    )
    counts.loc["all"] = counts.sum()
    counts["score"] = (
        counts["killed"] / (counts.sum(axis=1) - counts["equivalent"])
    ).map("{:.1%}".format)
    print(counts.to_string())


if __name__ == "__main__":
    main()
