import subprocess
import sys

import pytest

import mmcnb.kernels


def test_every_public_name_is_there():
    assert all(callable(getattr(mmcnb.kernels, name)) for name in mmcnb.kernels.__all__)
    assert set(mmcnb.kernels.__all__) <= set(dir(mmcnb.kernels))


def test_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'sigmoid_kernel_block'"):
        mmcnb.kernels.sigmoid_kernel_block


def test_import_loads_no_numba():
    code = "import sys, mmcnb.kernels; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
