"""Models and checkpoints of earlier releases are read by this one."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import mmcnb
from mmcnb.errors import InputError
from mmcnb.features.model import read_model, write_model
from mmcnb.stores import create_dense_store

DATA = Path(__file__).parents[1] / "data" / "models"
RELEASES = sorted(
    path.name for path in DATA.iterdir() if (path / "expected.json").exists()
)
EXPECTED = {
    release: json.loads((DATA / release / "expected.json").read_text())
    for release in RELEASES
}
GONE = ("GraphFeatures", "IterativeSVR", "LabelGenerationMMC", "OwnBasisMMC", "SDPMMC")
FRONT_DOOR = "MaximumMarginClustering"  # of 0.2, with other parameters
ON_GRAPHS = (
    "CrammerSingerMMC",
    "MaximumMarginClustering",
    "SparseKernelMMC",
    "UnsupervisedRLS",
)
CASES = [
    (release, name)
    for release in RELEASES
    for name in EXPECTED[release]
    if release != "0.2.0" or name not in (*GONE, FRONT_DOOR)
]


def rows():
    """The rows of ``tests/data/models/write.py``."""
    number = np.arange(60)
    spread = (number[:, None] * np.array([7, 11, 13]) + np.array([0, 3, 5])) % 9
    return (spread + 20 * np.eye(3)[number % 3]).astype(np.float64)


@pytest.mark.parametrize(("release", "name"), CASES)
def test_a_model_of_a_release_gives_the_labels_it_gave(release, name):
    model = mmcnb.load(DATA / release / f"{name}.model")
    expected = EXPECTED[release][name]
    assert type(model).__name__ == name
    found = model.decision_function(rows())
    scale = np.abs(expected["decisions"]).max()
    np.testing.assert_allclose(found, expected["decisions"], rtol=0, atol=1e-5 * scale)
    assert model.predict(rows()).tolist() == expected["labels"]
    assert len(set(expected["labels"])) > 1
    if release in ("0.2.0", "0.3.0"):  # which did not count them
        assert getattr(model, "n_changed_", None) is None


@pytest.mark.parametrize("name", GONE)
def test_a_model_of_a_class_that_is_gone_is_refused_with_the_way_out(name):
    sentence = rf"^[^\n]*{name}\.model contains a {name}, which this version does not have; fit again, [^\n]*\.$"
    with pytest.raises(InputError, match=sentence):
        mmcnb.load(DATA / "0.2.0" / f"{name}.model")


@pytest.mark.parametrize("name", [FRONT_DOOR, *(f"{kind}-graph" for kind in ON_GRAPHS)])
def test_a_model_on_the_graph_of_0_2_and_its_front_door_are_refused_with_the_way_out(
    name,
):
    with pytest.raises(
        InputError,
        match=rf"^[^\n]*{name}\.model [^\n]*; (fit again|choose|use)[^\n]*\.$",
    ):
        mmcnb.load(DATA / "0.2.0" / f"{name}.model")


@pytest.mark.parametrize("release", RELEASES)
def test_a_checkpoint_of_a_release_resumes_or_is_refused_in_a_sentence(
    release, tmp_path
):
    folder = tmp_path / "checkpoint"
    shutil.copytree(DATA / release / "checkpoint", folder)
    entries = sorted((folder / "passes").iterdir())
    assert entries
    with create_dense_store(tmp_path / "rows.zarr", 3) as writer:
        writer.append(rows())
    model = mmcnb.CPMMC(random_state=0, checkpoint=folder)
    why = r"run\.json is a checkpoint of format 2, [^\n]*"
    if release != "0.2.0":  # its processor is none, so that no machine has it
        why = r"checkpoint belongs to another fit: [^\n]*the processor is 'none' there[^\n]*"
    sentence = rf"{why}; give checkpoint another folder, or delete"
    with pytest.raises(InputError, match=sentence):
        model.fit(tmp_path / "rows.zarr")
    assert sorted((folder / "passes").iterdir()) == entries


@pytest.mark.parametrize(
    ("name", "parameter", "value", "now"),
    [
        # the fit chose the ridge
        (
            "UnsupervisedRLS",
            "alpha",
            "auto",
            {"alpha": 3e-4},
        ),
        ("KernelKMeans", "algorithm", "full", {}),
    ],
)
def test_parameters_of_0_2_that_mean_the_same_today_are_read(
    name, parameter, value, now, tmp_path
):
    model = getattr(mmcnb, name)(3, random_state=0, **now).fit(rows())
    model.save(tmp_path / "model")
    header, arrays = read_model(tmp_path / "model")
    header["parameters"][parameter] = value
    write_model(tmp_path / "older", header, arrays)
    again = mmcnb.load(tmp_path / "older")
    assert again.get_params() == model.get_params()
    assert again.predict(rows()).tobytes() == model.labels_.tobytes()
    header["parameters"]["algorithm"] = "mini-batch"
    write_model(tmp_path / "older", header, arrays)
    sentence = r"^[^\n]*the parameter 'algorithm', which no [^\n]*; fit again[^\n]*\.$"
    with pytest.raises(InputError, match=sentence):
        mmcnb.load(tmp_path / "older")
