"""Studies behind each figure of these pages: peers side by side, in one run, as tidy tables.

Run from a checkout as ``python -m benchmarks STUDY``; ``python -m benchmarks list``
shows the studies. The real data are found or downloaded as `data_loaders` says.
"""
