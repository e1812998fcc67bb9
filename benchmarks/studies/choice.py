"""The default's choice among its candidates on problems of five kinds, beside its peers.

``python -m benchmarks choice [--quick] [--jobs N] [--part NAME ...]`` has five
sections:

problems  shapes; tables and pairs of digits and letters, with two classes; sets with
          more classes; texts as words and as embeddings; cells, expression and images.
          Each is clustered with the number of its classes by `MaximumMarginClustering`,
          by its candidates of the graph alone, by the widest margin alone, by
          `SparseKernelMMC` if there are two, and by the libraries of the study of
          peers. Tables have means by kind and half, mean ranks among the peers, the
          problems on which a peer is ahead, the candidates, and how often the trust is
          right
papers    the data sets of the papers, unchanged, with five seeds, and MNIST with 24
repeats   eight data sets of all kinds by each method with ten seeds, in separate
          processes: AMI, the share of labelled rows, seconds, memory, and whether
          another seed and one thread give the same clusters
clubench  the ten data sets in the repository of CLUBench, with five of its methods and
          other peers; only if CLUBENCH names the folder of a clone
costs     seconds of the graph and of the candidates of 20,000 nodes; of a million
          sparse texts, with their memory; the memory of ``mmcnb fit`` within 512 MiB;
          and the time relative to ``KMeans(n_init=10)`` on all cores. Run this section
          alone, on an idle machine

Most tables are standardised; adult, digits, images and words are unchanged; cells are
reduced to 50 principal components. At most 10,000 rows are drawn. A data set has at
most ten pairs, and peers are fitted to three of them. Each data set has the same weight
in a mean, however many problems it has. All problems of a data set are in one half;
``--quick`` uses the tuning half, and one seed. J of a peer's labels is computed by
`mmcnb.partition_score`, which ignores noise; it is comparable only if the numbers of
clusters are equal. If ``MMCNB_BEFORE`` names the folder of a checkout, the first
section includes the default of that commit, called "before".
"""

import json
import os
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

import mmcnb
from benchmarks import libraries
from benchmarks.before import BEFORE, commit_before
from benchmarks.methods import (
    CUT,
    DENSITY,
    FRONT_DOOR,
    GRAPH,
    HINGE,
    KMEANS,
    MARGIN,
    estimator,
)
from benchmarks.protocol import MNIST_PAIRS, Data, scored
from benchmarks.run import Options, Run, Runs, Section, frame_of_runs
from benchmarks.studies import _choice_clubench, _choice_costs, _choice_repeats
from benchmarks.studies._choice_problems import (
    GEOMETRY,
    MOST_ROWS,
    Problem,
    problems_of,
    rows_of,
)
from benchmarks.studies._choice_tables import tables_of_papers, tables_of_problems
from benchmarks.studies._sets import QUICK_ROWS, n_clusters_of, tuning
from benchmarks.studies.peers import installed, with_noise
from mmcnb.datasets import SHAPES

PEERS = (KMEANS, *libraries.METHODS, CUT, DENSITY)
CLUBENCH = "clubench"
MOST_MARGIN_CLUSTERS = 12
FEW_COLUMNS = (*SHAPES, "haberman")  # EVoC needs four columns
# seeds
PAPERS = {
    "a9a": 5,
    "usps-extended": 5,
    **dict.fromkeys(MNIST_PAIRS, 5),
    "mnist": 24,
}


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield all installed methods on each problem."""
    rows = min(options.rows or MOST_ROWS, MOST_ROWS)
    here = installed(PEERS)
    commit = commit_before()
    for problem, seed in product(problems_of(options), options.repeats(3)):
        for method in (
            *ours_on(problem),
            *(peer for peer in here if problem.with_peers),
        ):
            again = (
                method in (*libraries.DRAW_NOTHING, DENSITY)
                and problem.kind != GEOMETRY
                and seed > 0
            )
            if not again and not (
                method == libraries.EVOC and problem.source in FEW_COLUMNS
            ):
                yield Run(
                    problem.name,
                    method,
                    seed,
                    settings={"rows": rows, "problem": list(problem)},
                )
        if commit is not None:
            settings = {"rows": rows, "problem": list(problem), "commit": commit}
            yield Run(problem.name, BEFORE, seed, settings=settings)


def ours_on(problem: Problem) -> Iterator[str]:
    """Return the default, its candidates of the graph alone, and the widest margin for two clusters."""
    yield from (FRONT_DOOR, GRAPH)
    yield from (MARGIN,) if problem.n_clusters <= MOST_MARGIN_CLUSTERS else ()
    yield from (HINGE,) if problem.n_clusters == 2 else ()


def compute(run: Run) -> dict[str, Any]:
    """Fit one method to one problem, without the classes."""
    name, source, kind, classes, with_peers = run.settings["problem"]
    problem = Problem(name, source, kind, tuple(classes), with_peers)
    data = rows_of(problem, run.settings["rows"], run.seed)
    return recorded(run, data, np.unique(data.y).size)


def recorded(run: Run, data: Data, k: int) -> dict[str, Any]:
    """Return scores of a fit, J and, for the default, its candidates and its trust."""
    given = {"n_init": 10} if run.method == KMEANS else {}
    model = estimator(run.method, k, random_state=run.seed, **given)
    compiled = libraries.first_seconds(run.method)
    found = scored(data, model, with_noise) | {"k": k}
    found |= {"compile_seconds": compiled or found["compile_seconds"]}
    if run.method == BEFORE:
        # Measured in the other process.
        found |= {"seconds": model.seconds_, "peak_mib": np.nan}
    if run.method in (FRONT_DOOR, GRAPH, MARGIN):
        judged = {one["candidate"]: one["J"] for one in model.report_["candidates"]}
        found |= {
            "J": model.objective_,
            "candidate": model.candidate_,
            "candidates": json.dumps(judged),
        }
        return found | {"trust": model.report_["trust"]["level"]}
    if found["clusters"] < 2:
        return found
    return found | {
        "J": mmcnb.partition_score(data.X, model.labels_, random_state=run.seed).J
    }


@frame_of_runs
def grid_of_papers(options: Options) -> Runs:
    """Yield the default on each data set, and the widest margin for two clusters."""
    for name in options.pick(tuple(PAPERS), tuning(tuple(PAPERS)), ("mnist-3v8",)):
        rows = options.rows_of(name, QUICK_ROWS if options.quick else None)
        for seed, method in product(options.repeats(PAPERS[name]), (FRONT_DOOR, HINGE)):
            if method == FRONT_DOOR or n_clusters_of(name) == 2:
                yield Run(name, method, seed, settings={"rows": rows})


def compute_of_papers(run: Run) -> dict[str, Any]:
    """Fit one method to one data set, without the classes."""
    return recorded(run, run.data, n_clusters_of(run.dataset))


SECTIONS = {
    "problems": Section(grid, compute, tables_of_problems),
    "papers": Section(grid_of_papers, compute_of_papers, tables_of_papers),
    "repeats": Section(
        _choice_repeats.grid, _choice_repeats.compute, _choice_repeats.tables
    ),
    CLUBENCH: Section(
        _choice_clubench.grid, _choice_clubench.compute, _choice_clubench.tables
    ),
    "costs": Section(_choice_costs.grid, _choice_costs.compute, _choice_costs.tables),
}


def usual_sections(options: Options) -> list[str]:
    """Return all sections; the section of CLUBench only if its files are available."""
    is_here = _choice_clubench.VARIABLE in os.environ
    return [name for name in SECTIONS if name != CLUBENCH or is_here]
