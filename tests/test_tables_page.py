"""The code of the page of tables runs and does as the page says."""

import re
from pathlib import Path

import pytest

from mmcnb.cli.convert import OF_TABLES
from mmcnb.samples import open_samples
from mmcnb.stores import open_class_labels, open_index

PAGE = (Path(__file__).parent.parent / "docs/tables.md").read_text()


def test_its_examples_run(tmp_path, monkeypatch):
    pytest.importorskip("anndata")
    monkeypatch.chdir(tmp_path)
    said: dict = {}
    csv, columnar, *others = re.findall(r"^```python\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    exec(csv, said)
    assert said["houses"].feature_names == ["area", "heating_gas", "heating_wood"]
    assert open_class_labels(said["houses"]).tolist() == [0, 1, 0]
    assert open_index(said["houses"]).tolist() == ["a", "b", "c"]
    assert said["taken"]["cells_filled"] == 1
    assert said["houses"].block(0, 3).tolist() == [[51.5, 1, 0], [140, 0, 1], [51.5, 1, 0]]
    exec(columnar, said)
    assert open_samples("houses.zarr").dtype == "float64"
    values = []
    for code in others:
        *lines, last = code.strip().split("\n")
        exec("\n".join(lines), said)
        values.append(eval(last, said))
    assert values[0].tolist() == [[51.5, 1, 0], [140, 0, 1]]
    assert values[1:] == [2]


def test_it_names_all_options():
    assert all(f"--{name.replace('_', '-')}" in PAGE for name in (*OF_TABLES, "dtype"))
