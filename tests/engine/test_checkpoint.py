"""A journal of passes: the same bits back, nothing run twice, and nothing damaged, foreign or forged used."""

import io
import json
import logging
import os
from dataclasses import dataclass
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest
import scipy.sparse as sp

from mmcnb.engine.checkpoint import (
    FORMAT,
    Checkpoint,
    CheckpointEngine,
    is_finished,
    recorded_passes,
)
from mmcnb.engine.entries import PART, fingerprint, read_entry, write_entry
from mmcnb.engine.run import ThreadEngine
from mmcnb.errors import InputError
from mmcnb.stores.archive import DamagedArchiveError
from tests.engine.fakes import FakeSamples

NAN = float("nan")
TOTALS = {
    "nothing": None,
    "floats": [0.1, -0.0, NAN, float("inf"), 5e-324, True, 2**70, "text"],
    "numbers": [np.float64(0.1), np.float32(NAN), np.int64(3), np.bool_(True)],
    "arrays": [
        np.arange(6.0).reshape(2, 3),
        np.zeros((0, 4), np.int8),
        np.array(2.5),
        [],
    ],
    "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "nested": ([np.ones(2), (1.5, [None])], ()),
    "csr": [sp.csr_array(np.eye(3, dtype=np.float32)), sp.csr_array((2, 5))],
}
RUN = {"format": FORMAT, "identity": {"C": 1}, "seed": 7, "finished": False}


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
        parts = ("data", "indices", "indptr")
        return one.shape == other.shape and all(
            same(getattr(one, k), getattr(other, k)) for k in parts
        )
    if isinstance(one, np.ndarray | np.generic):
        layouts = [
            (x.dtype, x.shape, x.flags.c_contiguous, x.flags.f_contiguous)
            for x in (one, other)
        ]
        return layouts[0] == layouts[1] and one.tobytes() == other.tobytes()
    return repr(one) == repr(other)


@pytest.fixture
def samples():
    return FakeSamples(np.random.default_rng(0).standard_normal((10_000, 3)))


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "run"


def sweep(folder, samples, constants, identity=None):
    """Run one pass a constant under a checkpoint; give the totals, and which were resumed."""
    with (
        Checkpoint(folder, identity or {"C": 1}) as checkpoint,
        ThreadEngine(1) as threads,
    ):
        threads.traffic.watched = samples
        engine = CheckpointEngine(threads, checkpoint)
        results = [
            (engine.run(Shift(by), samples), engine.traffic.resumed) for by in constants
        ]
    return [total for total, _ in results], [resumed for _, resumed in results]


def enter(folder, identity=None):
    """Begin a fit, and end it."""
    with Checkpoint(folder, identity or {"C": 1}) as checkpoint:
        return checkpoint.seed


def refused(folder, identity=None):
    """The one sentence that refuses a fit."""
    with pytest.raises(InputError, match=r"^[^\n]*\.$") as error:
        enter(folder, identity)
    return str(error.value)


def names(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


# -- entries ---------------------------------------------------------------------------


@pytest.mark.parametrize("total", TOTALS.values(), ids=TOTALS.keys())
def test_a_total_comes_back_with_the_same_types_and_bits(tmp_path, total):
    write_entry(tmp_path / "entry", "mark", total)
    mark, again = read_entry(tmp_path / "entry")
    assert mark == "mark"
    assert same(again, total)
    assert names(tmp_path) == ["entry"]


@pytest.mark.parametrize(
    "total", [object(), {"a": 1}, np.array([object()]), [sp.coo_array(np.eye(2))]]
)
def test_a_total_that_would_not_come_back_is_never_written(tmp_path, total):
    with pytest.raises((TypeError, ValueError)):
        write_entry(tmp_path / "entry", "mark", total)
    assert names(tmp_path) == []


def test_any_byte_that_changed_is_found_or_changes_nothing_and_none_may_be_missing(
    tmp_path,
):
    path = tmp_path / "entry"
    total = [np.arange(3.0), 0.5]
    write_entry(path, "mark", total)
    whole = path.read_bytes()
    damaged = 0
    for position in range(len(whole)):
        path.write_bytes(
            whole[:position] + bytes([whole[position] ^ 64]) + whole[position + 1 :]
        )
        try:
            mark, again = read_entry(path)
        except DamagedArchiveError:
            damaged += 1
        else:  # a date, for example
            assert mark == "mark"
            assert same(again, total)
        path.write_bytes(whole[:position])
        with pytest.raises(DamagedArchiveError):
            read_entry(path)
    assert damaged > len(whole) / 2


def npy(array=None, shape=None, descr="<f8"):
    """The bytes of an array, or of one whose header claims another shape and type."""
    out = io.BytesIO()
    if shape is None:
        np.save(out, array)
    else:
        np.lib.format.write_array_header_1_0(
            out, {"descr": descr, "fortran_order": False, "shape": shape}
        )
        out.write(bytes(64))
    return out.getvalue()


def entry_of(total):
    return json.dumps({"pass": "a", "total": total}).encode()


ONE_ARRAY = entry_of({"array": "0"})


@pytest.mark.parametrize(
    ("header", "arrays"),
    [
        (b"[" * 10**5, {}),
        (b"[]", {}),
        (entry_of({"object": "os.system"}), {}),
        (entry_of({"array": "3"}), {"0": npy(np.zeros(2))}),
        (ONE_ARRAY, {"0": npy(shape=(10**12, 8))}),
        (ONE_ARRAY, {"0": npy(shape=(-1,))}),
        (ONE_ARRAY, {"0": npy(shape=(8,), descr="|O")}),
        (ONE_ARRAY, {"0": b"no array"}),
        (
            entry_of(
                {
                    "csr": [{"array": "0"}, {"array": "1"}, {"array": "2"}],
                    "shape": [1, 2],
                }
            ),
            {
                "0": npy(np.ones(1)),
                "1": npy(np.array([99])),
                "2": npy(np.array([0, 1])),
            },
        ),
    ],
)
def test_a_forged_entry_is_no_entry(tmp_path, header, arrays):
    members = {"header": npy(np.frombuffer(header, np.uint8))} | arrays
    with ZipFile(tmp_path / "0", "w") as archive:  # with right checksums
        for name, member in members.items():
            archive.writestr(f"{name}.npy", member)
    with pytest.raises(DamagedArchiveError):
        read_entry(tmp_path / "0")


def test_fingerprints_tell_types_bits_and_places_apart():
    values = [
        None,
        True,
        1,
        1.0,
        "1",
        -0.0,
        0.0,
        [1],
        (1,),
        [1, 2],
        [[1], 2],
        ["1", 2],
        "None",
        np.float64(1),
        np.float32(1),
        np.array([1.0]),
        np.array([[1.0]]),
        np.array([1]),
        np.array([]),
        Shift(1),
        Shift(1.0),
        Shift(Shift(1)),
        np.zeros((2, 3)),
        np.zeros((3, 2)),
    ]
    assert len({fingerprint(value) for value in values}) == len(values)
    assert fingerprint(Shift(np.ones(3))) == fingerprint(Shift(np.ones(6)[::2]))
    with pytest.raises(TypeError, match="object"):
        fingerprint(Shift(object()))


# -- passes ----------------------------------------------------------------------------


def test_a_recorded_pass_is_recalled_and_not_run(folder, samples):
    first, resumed = sweep(folder, samples, [1.0, 2.0])
    assert resumed == [False, False]
    assert (samples.reads == 2).all()
    # of the same value
    again, resumed = sweep(folder, samples, [1.0, 2.0, 3.0], {"C": 1.0})
    assert resumed == [True, True, False]
    assert same(again[:2], first)
    assert (samples.reads == 3).all()


def test_passes_in_no_order_are_not_kept(folder):
    samples = FakeSamples(np.ones((1000, 3)))  # one block, as is the rule there
    with Checkpoint(folder, {}) as checkpoint, ThreadEngine(2) as threads:
        engine = CheckpointEngine(threads, checkpoint)
        one, two = engine.each(
            lambda by: engine.run(Shift(by), samples)[0].sum(), [1.0, 2.0]
        )
        assert one > two
        assert recorded_passes(folder) == 0
        engine.run(Shift(1.0), samples)
        assert recorded_passes(folder) == 1


@pytest.mark.parametrize("damage", ["flip", "cut", "gone", "empty"])
def test_a_damaged_entry_is_run_again_and_the_others_are_kept(
    folder, samples, damage, caplog
):
    first, _ = sweep(folder, samples, [1.0, 2.0, 3.0])
    entry = folder / "passes" / "000001"
    whole = bytearray(entry.read_bytes())
    if damage == "flip":
        whole[whole.rindex(b"\x93NUMPY") + 130] ^= 8
    entry.write_bytes(
        b"" if damage == "empty" else whole[: -20 if damage == "cut" else None]
    )
    if damage == "gone":
        entry.unlink()
    with caplog.at_level(logging.WARNING, "mmcnb"):
        again, resumed = sweep(folder, samples, [1.0, 2.0, 3.0])
    assert resumed == [True, False, True]
    assert same(again, first)
    assert ("pass 1 is damaged" in caplog.text) == (damage != "gone")
    assert sweep(folder, samples, [1.0, 2.0, 3.0])[1] == [True, True, True]


def test_a_pass_that_is_not_the_one_kept_is_refused(tmp_path, samples):
    for name in ("one", "other"):
        sweep(tmp_path / name, samples, [1.0, 2.0], {"the rows": {"digest": name}})
    one = tmp_path / "one"
    rows = {"the rows": {"digest": "one"}}
    with pytest.raises(
        InputError,
        match=r"^[^\n]*pass 1 of this fit is not the recorded one[^\n]*\.$",
    ):
        sweep(one, samples, [1.0, 2.5], rows)
    with pytest.raises(InputError, match="pass 0"):
        sweep(one, FakeSamples(samples.X[1:]), [1.0], rows)
    # Of other rows of the same shape, the same pass looks the same.
    (one / "passes/000000").write_bytes((tmp_path / "other/passes/000000").read_bytes())
    with pytest.raises(InputError, match="pass 0"):
        sweep(one, samples, [1.0], rows)


def test_a_disk_that_is_full_leaves_what_was_kept(folder, samples, monkeypatch):
    first, _ = sweep(folder, samples, [1.0])
    before = names(folder)

    def full(_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(
            InputError,
            match=r"^[^\n]*run could not be written \(No space left[^\n]*\.$",
        ):
            sweep(folder, samples, [1.0, 2.0])
    assert names(folder) == before
    again, resumed = sweep(folder, samples, [1.0, 2.0])
    assert resumed == [True, False]
    assert same(again[:1], first)


# -- the folder ------------------------------------------------------------------------


def test_the_folder_says_whether_the_fit_came_to_its_end(folder):
    assert not is_finished(folder)
    with pytest.raises(RuntimeError) as stopped, Checkpoint(folder, {"C": 1}):
        raise RuntimeError
    assert not hasattr(stopped.value, "__notes__")
    assert not is_finished(folder)
    enter(folder)
    assert is_finished(folder)
    assert names(folder) == ["lock", "passes", "run.json"]


@pytest.mark.parametrize("inside_a_kernel", [False, True])
def test_an_interrupt_says_how_to_go_on(folder, inside_a_kernel):
    error = KeyboardInterrupt()
    if inside_a_kernel:
        error = SystemError("returned a result with an exception set")
        error.__cause__ = KeyboardInterrupt()
    with pytest.raises(type(error)), Checkpoint(folder, {}):
        raise error
    (note,) = error.__notes__
    assert f"fit again with checkpoint={str(folder)!r}" in note


@pytest.mark.parametrize("seed", [None, 0, 2**31 - 2, 2**31 - 1])
def test_the_seed_that_was_drawn_comes_back(folder, seed):
    drawn = enter(folder)
    if seed is not None:
        (folder / "run.json").write_text(json.dumps(RUN | {"seed": seed}))
    assert enter(folder) == (drawn if seed is None else seed)


def test_another_fit_is_refused_by_name(folder):
    enter(folder, {"C": 1.0, "the rows": {"digest": "a"}, "scale": None})
    before = (folder / "run.json").read_bytes()
    sentence = refused(
        folder, {"C": 2.0, "the rows": {"digest": "b"}, "scale": None, "new": 3}
    )
    assert (
        "C is 1.0 there and 2.0 here, the rows differ, new is None there and 3 here;"
        in sentence
    )
    assert sentence.endswith("give checkpoint another folder, or delete this one.")
    assert (folder / "run.json").read_bytes() == before


def test_the_identity_is_plain_json(folder):
    table = np.eye(2)
    enter(
        folder,
        {
            "C": np.float32(0.5),
            "n_init": np.int64(3),
            "shares": np.ones(2),
            "landmarks": table,
        },
    )
    run = json.loads((folder / "run.json").read_bytes())
    plain = {
        "C": 0.5,
        "n_init": 3,
        "shares": [1.0, 1.0],
        "landmarks": {"digest": fingerprint(table)},
    }
    assert run["identity"] == plain


def test_a_folder_in_use_is_refused_and_free_again_afterwards(folder):
    with Checkpoint(folder, {"C": 1}):
        assert "is in use" in refused(folder)
    enter(folder)
    assert "another fit" in refused(folder, {"C": 2})
    enter(folder)


def test_what_is_no_folder_of_a_checkpoint_is_left_alone(folder):
    assert "does not exist" in refused(folder / "deeper")
    folder.write_text("mine")
    assert "is a file" in refused(folder)
    assert folder.read_text() == "mine"
    folder.unlink()
    folder.mkdir()
    (folder / ".hidden").write_text("mine")
    assert "contains other files" in refused(folder)
    assert names(folder) == [".hidden"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "[" * 10**5,
        '{"format": 2}',
        *(json.dumps(RUN | {"seed": seed}) for seed in (True, -1, 2**31)),
        json.dumps(RUN | {"identity": []}),
        json.dumps({name: RUN[name] for name in RUN if name != "finished"}),
    ],
)
def test_a_run_that_cannot_be_read_is_refused(folder, text):
    folder.mkdir()
    (folder / "run.json").write_text(text)
    assert "run.json is not a checkpoint" in refused(folder)
    assert (folder / "run.json").read_text() == text


@pytest.mark.parametrize("number", [FORMAT - 1, FORMAT + 1])
def test_a_checkpoint_of_another_format_is_refused_and_left_alone(folder, number):
    folder.mkdir()
    text = json.dumps(RUN | {"format": number})
    (folder / "run.json").write_text(text)
    sentence = refused(folder)
    assert f"run.json is a checkpoint of format {number}, but " in sentence
    assert sentence.endswith("another folder, or delete this one.")
    with pytest.raises(InputError, match=f"of format {number}"):
        is_finished(folder)
    assert (folder / "run.json").read_text() == text


def test_what_a_run_says_is_shown_in_one_short_line(folder):
    folder.mkdir()
    forged = {"C\nmmcnb: all is well": "x" * 10**6}
    (folder / "run.json").write_text(json.dumps(RUN | {"identity": forged}))
    sentence = refused(folder)
    assert "belongs to another fit: " in sentence
    assert len(sentence) < 2000


@pytest.mark.parametrize("name", ["lock", "passes", "run.json"])
def test_a_link_does_not_lead_what_is_written_elsewhere(tmp_path, folder, name):
    other = tmp_path / "other"
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps(RUN))
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(other)
    assert "has a link" in refused(folder)
    assert not other.exists()


def test_what_a_kill_left_behind_is_cleared_away_and_a_link_there_is_not_followed(
    tmp_path, folder, samples
):
    other = tmp_path / "other"
    other.write_text("mine")
    folder.mkdir()  # killed before there was a run
    (folder / f"run.json{PART}").write_text("{")
    (folder / "lock").touch()
    sweep(folder, samples, [1.0])
    (folder / "passes" / f"000001{PART}").write_bytes(b"half")
    (folder / "passes" / f"000002{PART}").symlink_to(other)
    assert recorded_passes(folder) == 1
    assert sweep(folder, samples, [1.0])[1] == [True]
    assert names(folder) == ["lock", "passes", "passes/000000", "run.json"]
    assert other.read_text() == "mine"


@pytest.mark.parametrize("call", ["pathlib.Path.mkdir", "os.open"])
def test_a_folder_that_cannot_be_written_is_refused(folder, monkeypatch, call):
    def closed(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(call, closed)
    assert "Permission denied" in refused(folder)
