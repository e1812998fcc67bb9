"""Work, damage and kills in any order: each answer is the untouched one, or one sentence.

One store, one checkpoint and one model file are converted, fitted, saved, loaded,
moved, damaged, and left by processes that are interrupted or killed at any change of a
file. After whatever came before, a fit or a prediction either gives the bits of the
untouched run, or is refused with one sentence. A refusal needs a reason: where nothing
was damaged and nothing is in the way, the answer must come.

    python -m pytest tests/test_states.py    # 20 runs of 20 steps, always the same
    python -m pytest tests/test_states.py --hypothesis-profile nightly    # 200 of 30, drawn anew
"""

import os
import shutil
import signal
import sys
import tempfile
import threading
import warnings
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import event, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

import mmcnb
from mmcnb.samples import open_samples
from mmcnb.stores import convert, verify_store
from tests.estimators.conftest import make_rings

ROWS = 300
CHUNK = 100
SMALL = {"random_state": 0, "n_init": 1, "sample_size": 100}
FITS = {
    "SparseKernelMMC": {"gamma": 2.0, "n_landmarks": 12, "eta": 1e-2},
    "CPMMC": {"eta": 1e-2},
    "UnsupervisedRLS": {"n_clusters": 3, "n_landmarks": 12},
}
WRITTEN = os.O_WRONLY | os.O_RDWR | os.O_CREAT
# and files that are opened to be written
CHANGES = {
    "os.rename",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
}

pytestmark = pytest.mark.slow
cases = st.sampled_from(sorted(FITS))
places = st.integers(0, 2**16)
moments = st.integers(0, 40)


# -- the untouched run -----------------------------------------------------------------


@cache
def beginnings():
    """A folder with the rows as a file, other rows, and the stores of both."""
    folder = Path(tempfile.mkdtemp())
    for seed, name in enumerate(("rows", "others")):
        np.save(folder / f"{name}.npy", make_rings(ROWS, seed=seed))
        write(folder / f"{name}.npy", folder / f"{name}.zarr")
    return folder


def write(rows, store, overwrite=False):
    """Convert rows to a store of three chunks."""
    with pytest.MonkeyPatch.context() as patch:
        # Internal: chunks of 4 MiB would be one chunk of these rows.
        patch.setattr("mmcnb.stores._write.chunk_rows_for", lambda row_bytes: CHUNK)
        convert(rows, store, overwrite=overwrite)


@cache
def untouched(case):
    """The answer of a fit that nothing disturbed."""
    return answer(estimator(case).fit(np.load(beginnings() / "rows.npy")))


@cache
def other_checkpoint(case):
    """The checkpoint of the same fit of other rows."""
    folder = beginnings() / case
    estimator(case, folder).fit(beginnings() / "others.zarr")
    return folder


def estimator(case, checkpoint=None):
    return getattr(mmcnb, case)(**SMALL, **FITS[case], checkpoint=checkpoint)


def answer(model):
    """All that a fit found, to the bit; how it got there, it may tell otherwise."""
    arrays = model.model_.arrays()
    return (
        model.labels_.tobytes(),
        model.objective_,
        {name: arrays[name].tobytes() for name in arrays},
    )


# -- kills -----------------------------------------------------------------------------

watched = {"left": None, "end": None}


@cache
def watch():
    """Have the interpreter tell of every change of a file in a temporary folder of a machine."""

    def told(event, arguments):
        if (
            watched["left"] is None
            or threading.current_thread() is not threading.main_thread()
        ):
            return
        changes = event in CHANGES or (event == "open" and arguments[2] & WRITTEN)
        if changes and "mmcnb-states" in str(arguments[0]):
            watched["left"] -= 1
            if watched["left"] < 0:
                watched["left"] = None
                watched["end"]()

    sys.addaudithook(told)


@contextmanager
def ending(moment, end):
    """Call ``end`` before some change of a file."""
    watch()
    watched.update(left=moment, end=end)
    try:
        yield
    finally:
        watched["left"] = None


def interrupt():
    raise KeyboardInterrupt


def kill():
    os.kill(os.getpid(), signal.SIGKILL)


def stopped(action, moment, by_kill):
    """Run what may be stopped before some change of a file; whether it ran to its end."""
    if not by_kill:
        try:
            with ending(moment, interrupt):
                action()
        except KeyboardInterrupt:
            return False
        return True
    with warnings.catch_warnings():
        # newer interpreters warn of threads and forks
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            with ending(moment, kill):
                action()
            os._exit(0)
        except mmcnb.InputError:
            os._exit(2)
        finally:
            os._exit(3)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return False
    if os.WEXITSTATUS(status) == 2:
        raise mmcnb.InputError("as the child was told")
    assert os.WEXITSTATUS(status) == 0
    return True


# -- damage ----------------------------------------------------------------------------


def damage(kind, folder, which, place, other):
    """Damage a file, or one of the files of a folder; whether a byte differs now."""
    files = (
        sorted(file for file in folder.rglob("*") if file.is_file())
        if folder.is_dir()
        else [folder]
    )
    files = [file for file in files if file.stat().st_size]
    if not files:
        return False
    file = files[which % len(files)]
    whole = file.read_bytes()
    if kind == "flip":
        spoiled = bytearray(whole)
        spoiled[place % len(whole)] ^= 1 << place % 8
        file.write_bytes(spoiled)
    elif kind == "truncate":
        file.write_bytes(whole[: place % len(whole)])
    elif kind == "delete":
        file.unlink()
        return True
    elif kind == "swap":
        second = files[place % len(files)]
        file.write_bytes(second.read_bytes())
        second.write_bytes(whole)
    else:  # the same file of another version
        source = other / file.relative_to(folder) if folder.is_dir() else other
        if source.is_file():
            shutil.copyfile(source, file)
    return not file.exists() or file.read_bytes() != whole


damages = st.sampled_from(["flip", "truncate", "delete", "swap", "stale"])


class States(RuleBasedStateMachine):
    """One store, one checkpoint and one model file, and what is known of them."""

    @initialize()
    def begin(self):
        """A folder with the store, and a fit of it in memory."""
        self.folder = Path(tempfile.mkdtemp(prefix="mmcnb-states-"))
        self.store = self.folder / "rows.zarr"
        self.model = self.folder / "a.model"
        self.checkpoint = self.folder / "run"
        self.damaged = set()  # of "store", "checkpoint", "model": a refusal is right
        # fits of which the model, and the checkpoint, may be
        self.saved, self.kept = (
            set(),
            set(),
        )
        self.was_killed = False
        shutil.copytree(beginnings() / "rows.zarr", self.store)
        self._fit("CPMMC", False)

    def teardown(self):
        """Nothing that failed or was interrupted left a file of its own; only a kill does."""
        left = set(self.folder.iterdir()) - {self.store, self.model, self.checkpoint}
        shutil.rmtree(self.folder, ignore_errors=True)
        assert self.was_killed or not left

    def refused(self, action, *things, otherwise=False):
        """Run what may be refused with one sentence, if one of these things was damaged."""
        try:
            action()
        except mmcnb.InputError as error:
            sentence = str(error)
        else:
            event("an answer")
            return False
        event(
            "a sentence"
            if self.damaged & set(things)
            else "a sentence on what was asked"
        )
        assert "\n" not in sentence
        assert otherwise or self.damaged & set(things), sentence
        return True

    # -- work --------------------------------------------------------------------------

    @rule(overwrite=st.booleans())
    def convert(self, overwrite):
        """Write the store, or be told that it is there."""
        is_there = self.store.exists()
        if self.refused(
            lambda: write(beginnings() / "rows.npy", self.store, overwrite),
            "store",  # without its mark, it is a folder that is not replaced
            otherwise=is_there and not overwrite,
        ):
            return
        assert overwrite or not is_there
        self.damaged.discard("store")

    @precondition(lambda self: self.store.exists())
    @rule()
    def verify(self):
        """A store that passes has the bytes that were written."""
        if not self.refused(lambda: verify_store(self.store), "store"):
            rows = open_samples(self.store).block(0, ROWS)
            assert rows.tobytes() == np.load(beginnings() / "rows.npy").tobytes()

    @precondition(lambda self: len(self.kept) == 1)
    @rule()
    def resume(self):
        """Fit again what the checkpoint is of."""
        self.fit(*self.kept, True)

    @rule(case=cases, with_checkpoint=st.booleans())
    def fit(self, case, with_checkpoint):
        """Fit the store; with a checkpoint, go on from there where it is of this fit."""
        if self.refused(
            lambda: self._fit(case, with_checkpoint),
            *("store", "checkpoint")[: 1 + with_checkpoint],
            otherwise=not self.store.exists()
            or (with_checkpoint and bool(self.kept - {case})),
        ):
            return
        assert answer(self.fitted) == untouched(case)
        if with_checkpoint:
            self.kept = {case}

    def _fit(self, case, with_checkpoint):
        if with_checkpoint and self.store.exists():
            self.kept |= {case}
        self.fitted = estimator(case, self.checkpoint if with_checkpoint else None).fit(
            self.store
        )

    @rule()
    def predict(self):
        """Label the rows of the store by the last fit, or the model that was loaded."""
        labels = []
        if not self.refused(
            lambda: labels.append(self.fitted.predict(self.store)),
            "store",
            otherwise=not self.store.exists(),
        ):
            assert labels[0].tobytes() == untouched(type(self.fitted).__name__)[0]

    @rule()
    def save(self):
        """Write the model file."""
        self.fitted.save(self.model)
        self.saved = {type(self.fitted).__name__}
        self.damaged.discard("model")

    @precondition(lambda self: self.model.exists())
    @rule()
    def load(self):
        """Read the model file: all of it is what was saved."""
        if not self.refused(self._load, "model"):
            assert type(self.fitted).__name__ in self.saved
            _, objective, arrays = untouched(type(self.fitted).__name__)
            found = self.fitted.model_.arrays()
            assert self.fitted.objective_ == objective
            assert {name: found[name].tobytes() for name in found} == arrays

    def _load(self):
        self.fitted = mmcnb.load(self.model)

    @rule(
        thing=st.sampled_from(["store", "model", "checkpoint"]),
        name=st.sampled_from("abc"),
    )
    def move(self, thing, name):
        """Everything works in another place as well."""
        old = getattr(self, thing)
        new = self.folder / (name + old.suffix)
        if old.exists() and not new.exists():
            old.rename(new)
            setattr(self, thing, new)

    @rule(thing=st.sampled_from(["store", "checkpoint"]))
    def delete(self, thing):
        """Begin anew, as a refusal advises."""
        shutil.rmtree(getattr(self, thing), ignore_errors=True)
        self.damaged.discard(thing)
        if thing == "checkpoint":
            self.kept = set()

    # -- what goes wrong ---------------------------------------------------------------

    @precondition(lambda self: self.store.exists())
    @rule(kind=damages, which=places, place=places)
    def damage_store(self, kind, which, place):
        """A file of the store changes."""
        if damage(kind, self.store, which, place, beginnings() / "others.zarr"):
            self.damaged.add("store")

    @precondition(lambda self: self.checkpoint.exists())
    @rule(kind=damages, which=places, place=places, case=cases)
    def damage_checkpoint(self, kind, which, place, case):
        """A file of the checkpoint changes."""
        if damage(kind, self.checkpoint, which, place, other_checkpoint(case)):
            self.damaged.add("checkpoint")

    @precondition(lambda self: self.model.exists())
    @rule(kind=damages, place=places)
    def damage_model(self, kind, place):
        """The model file changes."""
        if damage(kind, self.model, 0, place, beginnings() / "rows.npy"):
            self.damaged.add("model")

    @precondition(lambda self: self.store.exists())
    @rule(case=cases, moment=moments, by_kill=st.booleans())
    def stop_a_fit(self, case, moment, by_kill):
        """A fit with a checkpoint ends before its time."""
        self.was_killed |= by_kill
        if self.refused(
            lambda: stopped(lambda: self._fit(case, True), moment, by_kill),
            "store",
            "checkpoint",
            otherwise=bool(self.kept - {case}),
        ):
            return
        self.kept |= {case}

    @rule(moment=moments, by_kill=st.booleans(), overwrite=st.booleans())
    def stop_a_conversion(self, moment, by_kill, overwrite):
        """A conversion ends before its time: a store that was there is there still."""
        self.was_killed |= by_kill
        is_there = self.store.exists()
        action = partial(write, beginnings() / "rows.npy", self.store, overwrite)
        ended = []
        if self.refused(
            lambda: ended.append(stopped(action, moment, by_kill)),
            "store",
            otherwise=is_there and not overwrite,
        ):
            return
        assert self.store.exists() or not is_there
        if ended[0] or not is_there:
            self.damaged.discard("store")

    @rule(moment=st.integers(0, 3), by_kill=st.booleans())
    def stop_a_save(self, moment, by_kill):
        """Saving ends before its time: the file is the old one or the new one."""
        self.was_killed |= by_kill
        was_there = self.model.exists()
        stopped(lambda: self.fitted.save(self.model), moment, by_kill)
        assert self.model.exists() or not was_there
        if self.model.exists():
            self.saved |= {type(self.fitted).__name__}


if not hasattr(os, "fork"):
    pytest.skip("a fork is POSIX's", allow_module_level=True)

TestStates = States.TestCase
TestStates.settings = settings.get_profile(
    "nightly" if settings.get_current_profile_name() == "nightly" else "ci"
)
