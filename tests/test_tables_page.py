"""What the page of tables says is done by its code."""

import re
from pathlib import Path

from mmcnb.samples import open_samples
from mmcnb.stores import open_class_labels, open_index

PAGE = (Path(__file__).parent.parent / "docs/tables.md").read_text()


def test_its_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said: dict = {}
    parts = re.findall(r"^```python\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    exec(parts[0], said)
    assert said["houses"].feature_names == ["rooms", "area", "heating_gas", "heating_wood"]
    assert open_class_labels(said["houses"]).tolist() == [0, 1, 0, 1]
    assert open_index(said["houses"]).tolist() == ["a", "b", "c", "d"]
    assert said["taken"]["cells_filled"] == 1
    exec(parts[1], said)
    assert open_samples("houses.zarr").dtype == "float64"
    sizes = []
    for code in parts[2:]:
        *lines, last = code.strip().split("\n")
        exec("\n".join(lines), said)
        value, _, comment = last.partition("  # ")
        sizes.append((eval(value, said), comment))
    block, names, *counts = sizes
    assert block[0].tolist() == [[2], [5]]
    assert ", ".join(names[0]) == names[1]
    assert [str(count) for count, _ in counts] == [comment for _, comment in counts] == ["2", "5", "6"]
