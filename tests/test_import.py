"""Importing mmcnb and asking for help load nothing heavy."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import mmcnb

HEAVY = {"numba", "sklearn", "zarr", "pandas", "matplotlib", "scipy", "tqdm"}
REPORT = "; import sys; print(*(m for m in sys.modules if '.' not in m))"


def _modules_after(statement):
    done = subprocess.run(
        [sys.executable, "-c", statement + REPORT], capture_output=True, text=True, check=True
    )
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    "statement",
    [
        "import mmcnb",
        "import mmcnb.cli; mmcnb.cli.build_parser().format_help()",
    ],
)
def test_nothing_heavy_is_loaded_before_it_is_used(statement):
    assert _modules_after(statement) & HEAVY == set()


def test_a_name_loads_its_module_on_first_use():
    assert "zarr" in _modules_after("import mmcnb; mmcnb.open_samples")


@pytest.mark.slow
def test_the_solver_of_several_kernels_is_loaded_by_their_fits_alone():
    every = "import mmcnb; [getattr(mmcnb, name) for name in mmcnb.__all__]"
    assert "clarabel" not in _modules_after(every)


def test_rows_are_read_without_dask():
    loaded = _modules_after("import numpy, mmcnb; mmcnb.open_samples(numpy.zeros((3, 2))).block(0, 3)")
    assert loaded & {"dask", "distributed", "pyarrow", "anndata", "h5py"} == set()


def test_every_public_name_is_there_and_listed():
    for name in mmcnb.__all__:
        assert getattr(mmcnb, name) is not None
        assert name in dir(mmcnb)
    with pytest.raises(AttributeError, match="no_such_name"):
        mmcnb.no_such_name


def test_the_stub_names_what_the_module_exports():
    stub = Path(mmcnb.__file__).with_suffix(".pyi")
    names = {
        alias.asname or alias.name
        for node in ast.walk(ast.parse(stub.read_text()))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert names | {"__version__"} == set(mmcnb.__all__)
