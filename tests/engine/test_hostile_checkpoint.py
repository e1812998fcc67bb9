"""What stands in the folder of a checkpoint is believed as little as other input, whatever its digests."""

import io
import json
from zipfile import ZipFile

import numpy as np
import pytest

from mmcnb.engine.checkpoint import FORMAT, PART, Checkpoint, read_entry
from mmcnb.errors import InputError
from mmcnb.stores.archive import DamagedArchiveError

RUN = {"format": FORMAT, "identity": {"C": 3}, "seed": 7, "finished": False}


def forge(path, header, arrays):
    """An archive with right checksums."""
    members = {"header": npy(np.frombuffer(header, np.uint8))} | arrays
    with ZipFile(path, "w") as archive:
        for name, member in members.items():
            archive.writestr(f"{name}.npy", member)


def npy(array=None, shape=None, descr="<f8"):
    out = io.BytesIO()
    if shape is None:
        np.save(out, array)
    else:
        np.lib.format.write_array_header_1_0(out, {"descr": descr, "fortran_order": False, "shape": shape})
        out.write(bytes(64))
    return out.getvalue()


def entry(total):
    return json.dumps({"pass": "a", "total": total}).encode()


@pytest.mark.parametrize(
    ("header", "arrays"),
    [
        (b"[" * 10**5, {}),
        (b"[]", {}),
        (entry({"object": "os.system"}), {}),
        (entry({"array": "3"}), {"0": npy(np.zeros(2))}),
        (entry({"array": "0"}), {"0": npy(shape=(10**12, 8))}),
        (entry({"array": "0"}), {"0": npy(shape=(-1,))}),
        (entry({"array": "0"}), {"0": npy(np.array(["a"]))}),
        (entry({"array": "0"}), {"0": npy(shape=(8,), descr="|O")}),
        (entry({"array": "0"}), {"0": b"no array"}),
        (
            entry({"csr": [{"array": "0"}, {"array": "1"}, {"array": "2"}], "shape": [1, 2]}),
            {"0": npy(np.ones(1)), "1": npy(np.array([99])), "2": npy(np.array([0, 1]))},
        ),
    ],
)
def test_a_forged_entry_is_no_entry(tmp_path, header, arrays):
    forge(tmp_path / "0", header, arrays)
    with pytest.raises(DamagedArchiveError):
        read_entry(tmp_path / "0")


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 10**5,
        json.dumps(RUN | {"seed": True}).encode(),
        json.dumps(RUN | {"seed": -1}).encode(),
        json.dumps(RUN | {"seed": 2**40}).encode(),
        json.dumps(RUN | {"identity": []}).encode(),
    ],
)
def test_a_forged_run_is_one_sentence(tmp_path, text):
    (tmp_path / "run.json").write_bytes(text)
    with (
        pytest.raises(InputError, match=r"^[^\n]*run\.json is no checkpoint"),
        Checkpoint(tmp_path, {"C": 3}),
    ):
        pass


def test_what_a_run_says_is_shown_in_one_short_line(tmp_path):
    forged = {"C\nmmcnb: all is well": "x" * 10**6}
    (tmp_path / "run.json").write_text(json.dumps(RUN | {"identity": forged}))
    with (
        pytest.raises(InputError, match=r"^[^\n]*is of another fit: [^\n]*$") as caught,
        Checkpoint(tmp_path, {"C": 3}),
    ):
        pass
    assert len(str(caught.value)) < 2000


@pytest.mark.parametrize("name", ["lock", "passes", "run.json"])
def test_a_link_does_not_lead_what_is_written_elsewhere(tmp_path, name):
    folder, other = tmp_path / "checkpoint", tmp_path / "other"
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps(RUN)) if name != "run.json" else other.write_text("mine")
    (folder / name).symlink_to(other)
    with pytest.raises(InputError, match="has a link"), Checkpoint(folder, {"C": 3}):
        pass
    assert not other.exists() or other.read_text() == "mine"


def test_a_part_that_is_a_link_is_not_followed(tmp_path):
    folder, other = tmp_path / "checkpoint", tmp_path / "other"
    (folder / "passes").mkdir(parents=True)
    other.write_text("mine")
    (folder / "passes" / f"000000{PART}").symlink_to(other)
    with Checkpoint(folder, {"C": 3}) as checkpoint:
        checkpoint.record(0, "a", 1.0)
        assert checkpoint.recall(0, "a") == (1.0,)
    assert other.read_text() == "mine"
