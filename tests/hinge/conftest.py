"""An engine for all solvers' tests."""

import pytest

from mmcnb.engine.run import ThreadEngine


@pytest.fixture(scope="module")
def engine():
    """One thread."""
    with ThreadEngine(1) as engine:
        yield engine
