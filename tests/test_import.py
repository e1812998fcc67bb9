"""Importing mmcnb and asking for help load nothing heavy."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import mmcnb

HEAVY = {
    "numba",
    "sklearn",
    "zarr",
    "pandas",
    "matplotlib",
    "scipy",
    "tqdm",
    "dask",
    "clarabel",
}
STORAGES = {"dask", "distributed", "pyarrow", "anndata", "h5py"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "unused"),
    [
        ("import mmcnb", HEAVY),
        ("import mmcnb.cli; mmcnb.cli.build_parser().format_help()", HEAVY),
        (
            "import numpy, mmcnb; mmcnb.open_samples(numpy.zeros((3, 2))).block(0, 3)",
            STORAGES,
        ),
    ],
)
def test_what_is_not_used_is_not_loaded(statement, unused):
    code = f"{statement}; import sys; print(*(name for name in sys.modules if '.' not in name))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert not unused & set(loaded.split())


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
