"""
Can I use the compiled kernels in my own code?
==============================================

Yes, each is importable alone. Here kernel mean matching is not in mmcnb, but a few lines on its Gaussian kernel give it: the density of the rows
under a kernel, block by block, without a matrix of rows by rows.
"""

import matplotlib.pyplot as plt
import numpy as np

from mmcnb.kernels import rbf_kernel_block_into, squared_norms
from mmcnb.synthetic import make_shape
