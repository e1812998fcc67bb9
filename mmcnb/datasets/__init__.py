"""The data sets of a checkout, where they stand in the folder ``data_loaders``.

A wheel holds that folder as ``mmcnb/datasets``, without this file.
"""

import sys

import data_loaders
from data_loaders import *  # noqa: F403

sys.modules[__name__] = data_loaders
