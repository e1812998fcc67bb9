"""Settings for all tests."""

import os

from hypothesis import settings

os.environ["MPLBACKEND"] = "Agg"

# The same examples in every run, and no deadline: the first call of a kernel compiles it.
settings.register_profile("mmcnb", deadline=None, derandomize=True)
settings.load_profile("mmcnb")
