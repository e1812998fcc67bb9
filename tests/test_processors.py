"""Every estimator gives the same labels, whichever processor BLAS, numba, NumPy and libm see."""

import json
import os
import platform
import signal
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.preprocessing import StandardScaler, normalize

from mmcnb.datasets import make_shape

pytestmark = [
    pytest.mark.slow,
    pytest.mark.nightly,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the processors are those of x86_64"),
    pytest.mark.skipif(sys.platform != "linux", reason="the loader of Linux takes features away"),
]

# A core type, and what OpenBLAS may call the kernels that it takes for it.
CORES = {
    "Prescott": {"Prescott", "Katmai"},
    "Nehalem": {"Nehalem"},
    "Haswell": {"Haswell"},
    "SkylakeX": {"SkylakeX"},
    "Zen": {"Zen"},
}
WITHOUT_FMA = ("-AVX2,-FMA", "-AVX2_Usable,-FMA_Usable")  # glibc from 2.33 on, and before
TIES, LAYOUT = "words 5", "weighted words 6"  # sensitive to the last bits of distances and of weights
KERNELS = """
import numpy, scipy.linalg, threadpoolctl

print(*(one.get("architecture", "") for one in threadpoolctl.threadpool_info() if one["user_api"] == "blas"))
"""
LIBM = """
from math import cos, exp, log, pow

print(hash(tuple((cos(x / 7), exp(-x / 77), log(x / 7), pow(x, 0.7)) for x in range(1, 10_000))))
"""
FIT = """
import hashlib, json, sys, warnings
import mmcnb
import numpy as np
from scipy.sparse import csr_array

warnings.simplefilter("ignore")
found = {}
with np.load(sys.argv[1]) as sets:
    for name in sets:
        X = csr_array(sets[name]) if "sparse" in name else sets[name]
        model = mmcnb.MaximumMarginClustering(int(name.split()[-1]), random_state=0).fit(X)
        found[name] = [model.candidate_, hashlib.sha256(model.labels_.tobytes()).hexdigest()]
print(json.dumps(found))
"""
EVERY = """
import hashlib, json, sys, warnings
import numpy as np
from scipy.sparse import csr_array
from tests.estimators.every import NAMES, make_any

warnings.simplefilter("ignore")
found = {}
with np.load(sys.argv[1]) as sets:
    for key in sets:
        for name in NAMES:
            for form in (np.asarray, csr_array):
                model = make_any(name, n_clusters=int(key.split()[-1])).fit(form(sets[key]))
                digest = hashlib.sha256(model.labels_.tobytes()).hexdigest()
                found[f"{name}, {key}, {form.__name__}"] = [digest, float(f"{model.objective_:.4g}")]
print(json.dumps(found))
"""


def mixture(clusters, columns, rows, seed):
    random = np.random.RandomState(seed)
    means = 1.2 * random.normal(size=(clusters, columns))
    return means[random.randint(clusters, size=rows)] + random.normal(size=(rows, columns))


def words(topics, columns, rows, seed, least=1.0):
    """Directions of eight words each, of weights up to 1; if all weigh 1, very many distances are equal."""
    random, X = np.random.RandomState(seed), np.zeros((rows, columns))
    number, own = np.arange(rows)[:, None], columns // topics
    drawn = random.randint(columns, size=(rows, 8))
    drawn[:, :4] = number % topics * own + random.randint(own, size=(rows, 4))
    np.add.at(X, (number, drawn), random.uniform(least, 1, size=drawn.shape))
    return normalize(X)


def small_sets():
    """By name, which ends in the number of clusters."""
    wine, breast = (StandardScaler().fit_transform(load().data) for load in (load_wine, load_breast_cancer))
    return {
        "two-moons 2": make_shape("two-moons", 600, random_state=0)[0],
        "seven-blobs 7": make_shape("seven-blobs", 600, random_state=0)[0],
        "digits 10": load_digits().data,
        "wine 3": wine,
        "breast 2": breast,
        "60 columns 5": mixture(5, 60, 1000, 0),  # above 50 principal axes are used
        "directions 4": normalize(mixture(4, 20, 1000, 1)),
        "sparse words 5": words(5, 300, 600, 0),
        TIES: words(5, 300, 600, 0),
        LAYOUT: words(6, 200, 900, 6, 0.25),
    }


def groups(clusters, columns, rows, seed):
    """Groups that overlap a little; in ties and in rows without groups one optimum is as good as another."""
    random = np.random.RandomState(seed)
    of = random.randint(clusters, size=rows)
    return 2.5 * np.eye(clusters, columns)[of] + random.normal(size=(rows, columns)) * 0.6


@pytest.fixture(scope="module")
def groups_of_all(tmp_path_factory):
    path = tmp_path_factory.mktemp("groups") / "sets.npz"
    np.savez(path, **{"plane 2": groups(2, 2, 300, 0), "many columns 2": groups(2, 60, 200, 1)})
    return path


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    path = tmp_path_factory.mktemp("sets") / "sets.npz"  # made once, as libm has a part in made rows too
    np.savez(path, **small_sets())
    return path


def printed(code, *words, **environment):
    """What a process prints that sees another processor."""
    own = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | environment
    command = [sys.executable, "-c", code, *map(str, words)]
    done = subprocess.run(command, env=own, capture_output=True, text=True)
    if done.returncode == -signal.SIGILL and "OPENBLAS_CORETYPE" in environment:
        pytest.skip("this processor lacks instructions of the other one")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def labels(sets):
    return json.loads(printed(FIT, sets))


@pytest.fixture(scope="module")
def of_all(groups_of_all):
    return json.loads(printed(EVERY, groups_of_all))


@pytest.mark.parametrize("core", CORES)
def test_labels_do_not_depend_on_the_kernels_of_blas(core, sets, labels):
    taken = set(printed(KERNELS, OPENBLAS_CORETYPE=core).split())
    if not taken or not taken <= CORES[core]:
        pytest.skip(f"for {core} BLAS takes the kernels of {', '.join(taken) or 'a processor it hides'}")
    assert json.loads(printed(FIT, sets, OPENBLAS_CORETYPE=core)) == labels


@pytest.mark.parametrize("core", CORES)
def test_labels_of_every_estimator_do_not_depend_on_the_kernels_of_blas(core, groups_of_all, of_all):
    taken = set(printed(KERNELS, OPENBLAS_CORETYPE=core).split())
    if not taken or not taken <= CORES[core]:
        pytest.skip(f"for {core} BLAS takes the kernels of {', '.join(taken) or 'a processor it hides'}")
    assert json.loads(printed(EVERY, groups_of_all, OPENBLAS_CORETYPE=core)) == of_all


def test_labels_of_every_estimator_do_not_depend_on_instructions(groups_of_all, of_all, tmp_path):
    own = {"NUMBA_CPU_NAME": "generic", "NUMBA_CACHE_DIR": str(tmp_path)}
    assert json.loads(printed(EVERY, groups_of_all, **own)) == of_all
    found = np.show_config("dicts")["SIMD Extensions"].get("found", [])
    without = {"NPY_DISABLE_CPU_FEATURES": " ".join(found)} if found else {}
    assert json.loads(printed(EVERY, groups_of_all, **without)) == of_all


def test_labels_do_not_depend_on_the_loops_of_numpy(sets, labels):
    found = np.show_config("dicts")["SIMD Extensions"].get("found", [])
    if not found:
        pytest.skip("NumPy has no loops for this processor to leave out")
    without = json.loads(printed(FIT, sets, NPY_DISABLE_CPU_FEATURES=" ".join(found)))
    assert without == labels


def test_labels_do_not_depend_on_the_functions_of_libm(sets, labels):
    tunables = (f"glibc.cpu.hwcaps={names}" for names in WITHOUT_FMA)
    values = printed(LIBM)
    taken = [tunable for tunable in tunables if printed(LIBM, GLIBC_TUNABLES=tunable) != values]
    if not taken:
        pytest.skip("libm computes the same if it is told that the processor has no AVX2 and FMA")
    assert json.loads(printed(FIT, sets, GLIBC_TUNABLES=taken[0])) == labels


def test_labels_do_not_depend_on_the_instructions_that_numba_compiles_for(sets, labels, tmp_path):
    own = {"NUMBA_CPU_NAME": "generic", "NUMBA_CACHE_DIR": str(tmp_path)}
    assert json.loads(printed(FIT, sets, **own)) == labels
