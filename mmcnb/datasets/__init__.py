"""The data sets of a checkout, which are in the folder ``data_loaders``.

A wheel contains that folder as ``mmcnb/datasets``, in place of this file.
"""

import sys

import data_loaders
from data_loaders import *  # noqa: F403

sys.modules[__name__] = data_loaders
