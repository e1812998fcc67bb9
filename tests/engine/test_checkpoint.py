"""A journal of passes: the same bits back, nothing run twice, nothing damaged or foreign used."""

import json
import logging
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from mmcnb.engine.checkpoint import (
    FORMAT,
    PART,
    Checkpoint,
    CheckpointEngine,
    differences,
    fingerprint,
    is_finished,
    read_entry,
    recorded_passes,
    write_entry,
)
from mmcnb.engine.run import ThreadEngine
from mmcnb.errors import InputError
from mmcnb.stores.archive import DamagedArchiveError
from tests.engine.fakes import FakeSamples

NAN = float("nan")
TOTALS = {
    "nothing": None,
    "floats": [0.1, -0.0, NAN, float("inf"), 5e-324, True, 2**70, "text"],
    "numbers": [np.float64(0.1), np.float32(NAN), np.int64(3), np.bool_(True)],
    "arrays": [np.arange(6.0).reshape(2, 3), np.zeros((0, 4), np.int8), np.array(2.5), []],
    "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "nested": ([np.ones(2), (1.5, [None])], ()),
    "csr": [sp.csr_array(np.eye(3, dtype=np.float32)), sp.csr_array((2, 5))],
    "empty list": [],
}


@dataclass(frozen=True)
class Shift:
    """Sum of the columns less a constant."""

    by: Any

    def block(self, rows, start, stop):
        return [(rows - self.by).sum(axis=0, dtype=np.float64), stop - start]

    def combine(self, total, other):
        return [a + b for a, b in zip(total, other, strict=True)]


def same(one, other):
    """Whether two totals have the same types, layouts and bits."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if sp.issparse(one):
        return one.shape == other.shape and all(
            same(getattr(one, name), getattr(other, name)) for name in ("data", "indices", "indptr")
        )
    if isinstance(one, np.ndarray | np.generic):
        layouts = [(x.dtype, x.shape, x.flags.c_contiguous, x.flags.f_contiguous) for x in (one, other)]
        return layouts[0] == layouts[1] and one.tobytes() == other.tobytes()
    return repr(one) == repr(other)


@pytest.fixture
def samples():
    return FakeSamples(np.random.default_rng(0).standard_normal((10_000, 3)))


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "run"


def sweep(folder, samples, constants, identity=None, traffic=None):
    """Run one pass a constant under a checkpoint; give the totals, and which were resumed."""
    with Checkpoint(folder, identity or {"C": 1}) as checkpoint, ThreadEngine(1) as threads:
        threads.traffic.watched = samples
        engine = CheckpointEngine(threads, checkpoint)
        found = [(engine.run(Shift(by), samples), engine.traffic.resumed) for by in constants]
    return [total for total, _ in found], [resumed for _, resumed in found]


def stop(folder, error):
    """End a fit by an error."""
    with pytest.raises(type(error)), Checkpoint(folder, {}):
        raise error


def names(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


# -- entries -----------------------------------------------------------------------------------


@pytest.mark.parametrize("total", TOTALS.values(), ids=TOTALS.keys())
def test_a_total_comes_back_with_the_same_types_and_bits(tmp_path, total):
    write_entry(tmp_path / "entry", "mark", total)
    mark, again = read_entry(tmp_path / "entry")
    assert mark == "mark"
    assert same(again, total)
    assert names(tmp_path) == ["entry"]


@pytest.mark.parametrize("total", [object(), {"a": 1}, np.array([object()]), [sp.coo_array(np.eye(2))]])
def test_a_total_that_would_not_come_back_is_never_written(tmp_path, total):
    with pytest.raises((TypeError, ValueError)):
        write_entry(tmp_path / "entry", "mark", total)
    assert names(tmp_path) == []


def test_any_byte_that_changed_is_found_or_changes_nothing_and_none_may_be_missing(tmp_path):
    path, total, found = tmp_path / "entry", [np.arange(3.0), 0.5], 0
    write_entry(path, "mark", total)
    whole = path.read_bytes()
    for position in range(len(whole)):
        for bit in (1, 64):
            path.write_bytes(whole[:position] + bytes([whole[position] ^ bit]) + whole[position + 1 :])
            try:
                mark, again = read_entry(path)
            except DamagedArchiveError:
                found += 1
            else:  # a date, for example
                assert mark == "mark"
                assert same(again, total)
    assert found > len(whole)
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(DamagedArchiveError):
            read_entry(path)


def test_fingerprints_tell_types_bits_and_places_apart():
    values = [
        *(None, True, 1, 1.0, "1", -0.0, 0.0, [1], (1,), [1, 2], [[1], 2], ["1", 2], "None"),
        *(np.float64(1), np.float32(1), np.array([1.0]), np.array([[1.0]]), np.array([1]), np.array([])),
        *(Shift(1), Shift(1.0), Shift(Shift(1)), np.zeros((2, 3)), np.zeros((3, 2))),
    ]
    assert len({fingerprint(value) for value in values}) == len(values)
    assert fingerprint(Shift(np.ones(3))) == fingerprint(Shift(np.ones(6)[::2]))
    with pytest.raises(TypeError, match="object"):
        fingerprint(Shift(object()))


# -- the journal -------------------------------------------------------------------------------


def test_what_is_kept_is_not_run_again(folder, samples):
    first, resumed = sweep(folder, samples, [1.0, 2.0])
    assert resumed == [False, False]
    assert samples.reads.tolist() == [2] * samples.n_samples
    again, resumed = sweep(folder, samples, [1.0, 2.0, 3.0])
    assert resumed == [True, True, False]
    assert samples.reads.tolist() == [3] * samples.n_samples
    assert same(again[:2], first)


def test_traffic_counts_what_was_read(folder, samples):
    sweep(folder, samples, [1.0])
    with Checkpoint(folder, {"C": 1}) as checkpoint, ThreadEngine(1) as threads:
        threads.traffic.watched = samples
        engine = CheckpointEngine(threads, checkpoint)
        engine.run(Shift(1.0), samples)
        assert engine.traffic.to_dict() == {"reads": 0, "sweeps": 0, "bytes": 0, "resumed": True}
        engine.run(Shift(2.0), samples)
        assert engine.traffic.to_dict() == {"reads": 1, "sweeps": 0, "bytes": 240_000, "resumed": False}


def test_little_rows_in_memory_are_not_kept_and_many_are(folder, samples):
    samples.is_reopenable = False
    with Checkpoint(folder, {}) as checkpoint, ThreadEngine(1) as threads:
        CheckpointEngine(threads, checkpoint).run(Shift(1.0), samples)
        assert recorded_passes(folder) == 0
        CheckpointEngine(threads, checkpoint, least_bytes=240_000).run(Shift(1.0), samples)
        assert recorded_passes(folder) == 1


def test_passes_in_no_order_are_not_kept(folder):
    samples = FakeSamples(np.ones((1000, 3)))  # one block, as is the rule there
    with Checkpoint(folder, {}) as checkpoint, ThreadEngine(2) as threads:
        engine = CheckpointEngine(threads, checkpoint)
        found = engine.each(lambda by: engine.run(Shift(by), samples)[0].sum(), [1.0, 2.0])
        assert found[0] > found[1]
        assert recorded_passes(folder) == 0
        engine.run(Shift(1.0), samples)
        assert recorded_passes(folder) == 1


@pytest.mark.parametrize("damage", ["flip", "cut", "gone", "empty"])
def test_a_damaged_entry_is_run_again_and_the_others_are_kept(folder, samples, damage, caplog):
    first, _ = sweep(folder, samples, [1.0, 2.0, 3.0])
    entry = folder / "passes" / "000001"
    whole = bytearray(entry.read_bytes())
    if damage == "flip":
        whole[whole.rindex(b"\x93NUMPY") + 130] ^= 8
    entry.write_bytes(b"" if damage == "empty" else whole[: -20 if damage == "cut" else None])
    if damage == "gone":
        entry.unlink()
    with caplog.at_level(logging.WARNING, "mmcnb"):
        again, resumed = sweep(folder, samples, [1.0, 2.0, 3.0])
    assert resumed == [True, False, True]
    assert same(again, first)
    assert ("pass 1 is damaged" in caplog.text) == (damage != "gone")
    assert sweep(folder, samples, [1.0, 2.0, 3.0])[1] == [True, True, True]


def test_a_pass_that_is_not_the_one_kept_is_refused(folder, samples):
    sweep(folder, samples, [1.0, 2.0])
    with pytest.raises(InputError, match=r"^[^\n]*pass 1 of this fit is not the one kept there[^\n]*\.$"):
        sweep(folder, samples, [1.0, 2.5])
    samples.n_samples -= 1
    with pytest.raises(InputError, match="pass 0"):
        sweep(folder, samples, [1.0])


def test_an_entry_of_another_checkpoint_is_refused(tmp_path, samples):
    """Of other rows of the same shape, the same pass looks the same."""
    for name in ("one", "other"):
        sweep(tmp_path / name, samples, [1.0], {"C": 3, "the rows": {"digest": name}})
    entry = "passes/000000"
    (tmp_path / "one" / entry).write_bytes((tmp_path / "other" / entry).read_bytes())
    with pytest.raises(InputError, match=r"^[^\n]*pass 0 of this fit is not the one kept there[^\n]*\.$"):
        sweep(tmp_path / "one", samples, [1.0], {"C": 3, "the rows": {"digest": "one"}})


def test_numbers_of_another_type_are_the_same_fit(folder, samples):
    sweep(folder, samples, [1.0], {"C": 3})
    assert sweep(folder, samples, [1.0], {"C": 3.0})[1] == [True]


def test_a_disk_that_is_full_leaves_what_was_kept(folder, samples, monkeypatch):
    first, _ = sweep(folder, samples, [1.0])
    before = names(folder)

    def full(_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(InputError, match=r"^[^\n]*run could not be written \(No space left[^\n]*\.$"):
            sweep(folder, samples, [1.0, 2.0])
    assert names(folder) == before
    again, resumed = sweep(folder, samples, [1.0, 2.0])
    assert resumed == [True, False]
    assert same(again[:1], first)


# -- the folder --------------------------------------------------------------------------------


def test_the_folder_says_whether_the_fit_came_to_its_end(folder, samples):
    assert not is_finished(folder)
    stop(folder, RuntimeError())
    assert not is_finished(folder)
    with Checkpoint(folder, {}):
        pass
    assert is_finished(folder)
    assert names(folder) == ["lock", "passes", "run.json"]


def test_a_seed_is_drawn_once(folder):
    seeds = []
    for _ in range(2):
        with Checkpoint(folder, {}) as checkpoint:
            seeds.append(checkpoint.seed)
    assert seeds[0] == seeds[1]


@pytest.mark.parametrize("seed", [0, 2**31 - 2])
def test_the_least_and_the_largest_seed_come_back_too(folder, monkeypatch, seed):
    with monkeypatch.context() as patch:
        patch.setattr("secrets.randbelow", lambda _: seed)
        with Checkpoint(folder, {}):
            pass
    with Checkpoint(folder, {}) as checkpoint:
        assert checkpoint.seed == seed


def test_another_fit_is_refused_by_name(folder):
    with Checkpoint(folder, {"C": 1.0, "the rows": {"digest": "a"}, "scale": None}):
        pass
    before = (folder / "run.json").read_bytes()
    other = {"C": 2.0, "the rows": {"digest": "b"}, "scale": None, "new": 3}
    with pytest.raises(InputError) as refused, Checkpoint(folder, other):
        pass
    sentence = str(refused.value)
    assert "C is 1.0 there and 2.0 here, the rows differ, new is None there and 3 here;" in sentence
    assert sentence.endswith("give checkpoint another folder, or delete this one.")
    assert (folder / "run.json").read_bytes() == before


def test_whole_numbers_and_fractions_of_the_same_value_do_not_differ():
    assert list(differences({"C": 10}, {"C": 10.0})) == []


def test_a_folder_in_use_is_refused_and_free_again_afterwards(folder):
    with Checkpoint(folder, {}), pytest.raises(InputError, match="is in use"), Checkpoint(folder, {}):
        pass
    with Checkpoint(folder, {}):
        pass
    with pytest.raises(InputError, match="another fit"), Checkpoint(folder, {"C": 1}):
        pass
    with Checkpoint(folder, {}):
        pass


@pytest.mark.parametrize("name", ["photo.png", ".hidden", "zarr.json"])
def test_a_folder_that_holds_other_things_is_left_alone(folder, name):
    folder.mkdir()
    (folder / name).write_text("mine")
    with pytest.raises(InputError, match="holds other things"), Checkpoint(folder, {}):
        pass
    assert names(folder) == [name]


def test_what_is_no_folder_or_has_no_parent_is_refused(folder):
    with pytest.raises(InputError, match="does not exist"), Checkpoint(folder / "deeper", {}):
        pass
    folder.write_text("mine")
    with pytest.raises(InputError, match="is a file"), Checkpoint(folder, {}):
        pass
    assert folder.read_text() == "mine"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 2}', '{"format": 1, "identity": {}, "seed": 1}'])
def test_a_run_that_cannot_be_read_is_refused(folder, text):
    folder.mkdir()
    (folder / "run.json").write_text(text)
    with (
        pytest.raises(InputError, match=r"^[^\n]*run.json is no checkpoint[^\n]*\.$"),
        Checkpoint(folder, {}),
    ):
        pass
    assert (folder / "run.json").read_text() == text


@pytest.mark.parametrize("found", [FORMAT - 1, FORMAT + 1])
def test_a_checkpoint_of_another_format_is_refused_and_left_alone(folder, found):
    with Checkpoint(folder, {}):
        pass
    run = folder / "run.json"
    other = json.dumps(json.loads(run.read_bytes()) | {"format": found})
    run.write_text(other)
    sentence = (
        rf"run\.json is a checkpoint of format {found}, and [^\n]* another folder, or delete this one\.$"
    )
    with pytest.raises(InputError, match=sentence), Checkpoint(folder, {}):
        pass
    with pytest.raises(InputError, match=sentence):
        is_finished(folder)
    assert run.read_text() == other


def test_what_a_kill_left_behind_is_cleared_away(folder, samples):
    folder.mkdir()  # killed before there was a run
    (folder / f"run.json{PART}").write_text("{")
    (folder / "lock").touch()
    sweep(folder, samples, [1.0])
    (folder / "passes" / f"000001{PART}").write_bytes(b"half")
    sweep(folder, samples, [1.0])
    assert names(folder) == ["lock", "passes", "passes/000000", "run.json"]


def test_a_folder_that_cannot_be_written_is_refused(folder, monkeypatch):
    def closed(*_, **__):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.mkdir", closed)
        with pytest.raises(InputError, match="Permission denied"), Checkpoint(folder, {}):
            pass
    assert not folder.exists()
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", closed)
        with pytest.raises(InputError, match="Permission denied"), Checkpoint(folder, {}):
            pass


@pytest.mark.parametrize("inside_a_kernel", [False, True])
def test_an_interrupt_says_how_to_go_on(folder, inside_a_kernel):
    error = KeyboardInterrupt()
    if inside_a_kernel:
        error = SystemError("returned a result with an exception set")
        error.__cause__ = KeyboardInterrupt()
    stop(folder, error)
    (note,) = error.__notes__
    assert f"fit again with checkpoint={str(folder)!r}" in note
    failure = RuntimeError()
    stop(folder, failure)
    assert not hasattr(failure, "__notes__")


def test_the_identity_is_plain_json(folder):
    with Checkpoint(folder, {"C": np.float32(0.5), "n_init": np.int64(3), "scale": None}):
        pass
    run = json.loads((folder / "run.json").read_bytes())
    assert run["identity"] == {"C": 0.5, "n_init": 3, "scale": None}
