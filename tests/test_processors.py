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
    pytest.mark.skipif(
        platform.machine() != "x86_64", reason="the processors are those of x86_64"
    ),
    pytest.mark.skipif(
        sys.platform != "linux", reason="the loader of Linux takes features away"
    ),
]

# A core type, and what OpenBLAS may call the kernels that it takes for it.
CORES = {
    "Prescott": {"Prescott", "Katmai"},
    "Nehalem": {"Nehalem"},
    "Haswell": {"Haswell"},
    "SkylakeX": {"SkylakeX"},
    "Zen": {"Zen"},
}
# glibc from 2.33 on, and before
WITHOUT_FMA = (
    "-AVX2,-FMA",
    "-AVX2_Usable,-FMA_Usable",
)
# sensitive to the last bits of distances and of weights
TIES = "words 5"
LAYOUT = "weighted words 6"
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
labels = {}
with np.load(sys.argv[1]) as sets:
    for name in sets:
        X = csr_array(sets[name]) if "sparse" in name else sets[name]
        model = mmcnb.MaximumMarginClustering(int(name.split()[-1]), random_state=0).fit(X)
        labels[name] = [model.candidate_, hashlib.sha256(model.labels_.tobytes()).hexdigest()]
print(json.dumps(labels))
"""
EVERY = """
import hashlib, json, sys, warnings
import numpy as np
from scipy.sparse import csr_array
from tests.estimators.every import NAMES, make_any

warnings.simplefilter("ignore")
labels = {}
with np.load(sys.argv[1]) as sets:
    for key in sets:
        for name in NAMES:
            for form in (np.asarray, csr_array):
                model = make_any(name, n_clusters=int(key.split()[-1])).fit(form(sets[key]))
                digest = hashlib.sha256(model.labels_.tobytes()).hexdigest()
                labels[f"{name}, {key}, {form.__name__}"] = [digest, float(f"{model.objective_:.4g}")]
print(json.dumps(labels))
"""


def mixture(clusters, columns, rows, seed):
    random = np.random.RandomState(seed)
    means = 1.2 * random.normal(size=(clusters, columns))
    return means[random.randint(clusters, size=rows)] + random.normal(
        size=(rows, columns)
    )


def words(topics, columns, rows, seed, least=1.0):
    """Directions of eight words each, of weights up to 1; if all weigh 1, very many distances are equal."""
    random = np.random.RandomState(seed)
    X = np.zeros((rows, columns))
    number = np.arange(rows)[:, None]
    own = columns // topics
    drawn = random.randint(columns, size=(rows, 8))
    drawn[:, :4] = number % topics * own + random.randint(own, size=(rows, 4))
    np.add.at(X, (number, drawn), random.uniform(least, 1, size=drawn.shape))
    return normalize(X)


def small_sets():
    """By name, which ends in the number of clusters."""
    wine, breast = (
        StandardScaler().fit_transform(load().data)
        for load in (load_wine, load_breast_cancer)
    )
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
    return (
        2.5 * np.eye(clusters, columns)[of] + random.normal(size=(rows, columns)) * 0.6
    )


def printed(code, *words, **environment):
    """What a process prints that sees another processor."""
    settings = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | environment
    command = [sys.executable, "-c", code, *map(str, words)]
    process = subprocess.run(command, env=settings, capture_output=True, text=True)
    if process.returncode == -signal.SIGILL and "OPENBLAS_CORETYPE" in environment:
        pytest.skip("this processor lacks instructions of the other one")
    assert process.returncode == 0, process.stderr
    return process.stdout


@pytest.fixture(scope="module", params=["the default", "every estimator"])
def fits(request, tmp_path_factory):
    """A function that gives the labels of fits in a process of some environment; and those of this one."""
    # made once, as libm has a part in made rows too
    path = tmp_path_factory.mktemp("sets") / "sets.npz"
    if request.param == "the default":
        code = FIT
        sets = small_sets()
    else:
        code = EVERY
        sets = {
            "plane 2": groups(2, 2, 300, 0),
            "many columns 2": groups(2, 60, 200, 1),
        }
    np.savez(path, **sets)

    def labels(**environment):
        return json.loads(printed(code, path, **environment))

    return labels, labels()


@pytest.mark.parametrize("core", CORES)
def test_labels_do_not_depend_on_the_kernels_of_blas(core, fits):
    labels, expected = fits
    taken = set(printed(KERNELS, OPENBLAS_CORETYPE=core).split())
    if not taken or not taken <= CORES[core]:
        pytest.skip(
            f"for {core} BLAS takes the kernels of {', '.join(taken) or 'a processor it hides'}"
        )
    assert labels(OPENBLAS_CORETYPE=core) == expected


def test_labels_do_not_depend_on_the_loops_of_numpy(fits):
    labels, expected = fits
    features = np.show_config("dicts")["SIMD Extensions"].get("found", [])
    if not features:
        pytest.skip("NumPy has no loops for this processor to leave out")
    assert labels(NPY_DISABLE_CPU_FEATURES=" ".join(features)) == expected


def test_labels_do_not_depend_on_the_functions_of_libm(fits):
    labels, expected = fits
    tunables = (f"glibc.cpu.hwcaps={names}" for names in WITHOUT_FMA)
    values = printed(LIBM)
    taken = [
        tunable
        for tunable in tunables
        if printed(LIBM, GLIBC_TUNABLES=tunable) != values
    ]
    if not taken:
        pytest.skip(
            "libm computes the same if it is told that the processor has no AVX2 and FMA"
        )
    assert labels(GLIBC_TUNABLES=taken[0]) == expected


def test_labels_do_not_depend_on_the_instructions_that_numba_compiles_for(
    fits, tmp_path
):
    labels, expected = fits
    assert labels(NUMBA_CPU_NAME="generic", NUMBA_CACHE_DIR=str(tmp_path)) == expected
