"""Studies behind the figures of the documentation, which run mmcnb beside its peers and return tidy tables.

Run a study from a checkout with ``python -m benchmarks STUDY``; ``python -m benchmarks
list`` shows the studies. `data_loaders` finds or downloads the real data.
"""
