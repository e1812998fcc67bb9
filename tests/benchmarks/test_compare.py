"""Two commits are compared: slow work has a sentence, and changed kernels are listed."""

import shutil

import pandas as pd

from benchmarks.compare import ROOT, changed_kernels, slower


def test_only_work_above_the_limit_has_a_sentence():
    table = pd.DataFrame({"work": ["fit", "predict"], "ratio": [1.19, 1.21]})
    [sentence] = slower(table, 1.2)
    assert sentence.startswith("predict takes 1.21 times")
    assert slower(table, float("inf")) == []


def test_files_with_changed_or_new_routines_are_listed(tmp_path):
    shutil.copytree(ROOT / "mmcnb", tmp_path / "mmcnb")
    assert changed_kernels(tmp_path) == []
    moves = tmp_path / "mmcnb" / "kernels" / "moves.py"
    moves.write_text(moves.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    (tmp_path / "mmcnb" / "kernels" / "sizes.py").unlink()
    metrics = tmp_path / "mmcnb" / "metrics.py"  # without compiled routines
    metrics.write_text("", encoding="utf-8")
    assert changed_kernels(tmp_path) == [
        "mmcnb/kernels/moves.py",
        "mmcnb/kernels/sizes.py",
    ]
