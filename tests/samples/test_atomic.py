"""Files that appear complete or not at all, several at once, and what killed processes leave."""

import ctypes
import errno
import os
import shutil
import subprocess
import sys
import textwrap
import threading
from contextlib import suppress
from types import SimpleNamespace

import pytest

from mmcnb.errors import InputError
from mmcnb.stores.atomic import AtomicOutput, atomic_write, together, writing
from mmcnb.stores.leftovers import ALIVE, GONE, UNKNOWN, leftovers


@pytest.fixture(params=["one step", "several steps"])
def steps(request, monkeypatch):
    """Systems that exchange two names in one step, and others, which have no such function."""
    if request.param == "several steps":
        monkeypatch.setattr(ctypes, "CDLL", None)
    elif sys.platform != "linux":
        pytest.skip("renameat2 is Linux'")
    return request.param


def write(path, text, kind="file"):
    """A file, or a folder that is a store."""
    if kind == "folder":
        path.mkdir()
        path = path / "zarr.json"
    path.write_text(text)


def replace(path, text, kind="file", overwrite=True, meanwhile=lambda: None):
    """Write an output; something else may happen before it is placed."""
    with AtomicOutput(path, overwrite) as output:
        write(output.path, text, kind)
        meanwhile()


def read(path):
    return (path / "zarr.json" if path.is_dir() else path).read_text()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_appears_when_it_is_complete(tmp_path):
    path = tmp_path / "notes"
    with atomic_write(path) as file:
        file.write(b"new")
        assert not path.exists()
    assert read(path) == "new"
    assert names(tmp_path) == ["notes"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, OSError])
def test_after_an_error_the_old_file_stands_alone(tmp_path, error):
    path = tmp_path / "notes"
    path.write_bytes(b"old")

    def fail():
        with atomic_write(path) as file:
            file.write(b"new")
            raise error

    with pytest.raises(error):
        fail()
    assert read(path) == "old"
    assert names(tmp_path) == ["notes"]


def test_a_fixed_part_is_overwritten(tmp_path):
    part = tmp_path / "notes.part"
    part.write_bytes(b"left by a process that was killed")
    with atomic_write(tmp_path / "notes", part=part) as file:
        file.write(b"new")
    assert read(tmp_path / "notes") == "new"
    assert names(tmp_path) == ["notes"]


@pytest.mark.parametrize("name", ["new", "old", "lock", ".part-x", "zarr.json"])
def test_no_name_of_an_output_is_in_the_way(tmp_path, name, steps):
    for text in ("first", "second"):
        replace(tmp_path / name, text, "folder")
    assert read(tmp_path / name) == "second"
    assert names(tmp_path) == [name]


# Races


@pytest.mark.parametrize(
    ("mine", "other"), [("file", "file"), ("file", "folder"), ("folder", "folder")]
)
def test_an_output_that_appears_meanwhile_is_kept(tmp_path, mine, other, steps):
    path = tmp_path / "rows"
    with pytest.raises(InputError, match="exists already: choose another path"):
        replace(
            path, "new", mine, False, lambda: write(path, "of another process", other)
        )
    assert read(path) == "of another process"
    assert names(tmp_path) == ["rows"]


@pytest.mark.skipif(
    sys.platform != "linux", reason="elsewhere the last look and the move are two steps"
)
@pytest.mark.parametrize("other", ["file", "folder"])
def test_an_output_that_appears_after_the_last_look_is_kept(
    tmp_path, other, monkeypatch
):
    path = tmp_path / "rows"
    load = ctypes.CDLL

    def late_library(*how, **options):
        rename = load(*how, **options).renameat2

        def too_late(*names):
            write(path, "of another process", other)
            return rename(*names)

        return SimpleNamespace(renameat2=too_late)

    with pytest.raises(InputError, match="exists already: choose another path"):
        replace(
            path,
            "new",
            "file",
            False,
            lambda: monkeypatch.setattr(ctypes, "CDLL", late_library),
        )
    assert read(path) == "of another process"
    assert names(tmp_path) == ["rows"]


@pytest.mark.parametrize("kinds", [("file", "folder"), ("folder", "file")])
@pytest.mark.parametrize("was_there", [False, True])
def test_outputs_appear_all_or_none(tmp_path, kinds, was_there, steps):
    """The last one cannot be placed, so that those placed before are taken back."""
    if was_there:
        write(tmp_path / "a", "old", kinds[1])
        write(tmp_path / "b", "old", kinds[0])
    (tmp_path / "c").mkdir()
    before = names(tmp_path)

    def fail():
        outputs = [
            AtomicOutput(tmp_path / name, overwrite=was_there or name == "c")
            for name in "abc"
        ]
        with together(outputs):
            for output, kind in zip(outputs, (*kinds, "folder"), strict=True):
                write(output.path, "new", kind)
            (tmp_path / "c/notes").touch()

    with pytest.raises(
        InputError, match="c is a folder, not a Zarr store, so it is not replaced"
    ):
        fail()
    assert names(tmp_path) == before
    if was_there:
        assert [read(tmp_path / name) for name in "ab"] == ["old", "old"]


@pytest.mark.skipif(
    sys.platform != "linux", reason="elsewhere an exchange takes several steps"
)
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_is_replaced_is_never_missing(tmp_path, kind):
    path = tmp_path / "rows"
    write(path, "old", kind)
    done = threading.Event()
    missing = []

    def watch():
        while not done.is_set():
            if not os.path.lexists(path):
                missing.append(True)

    watcher = threading.Thread(target=watch)
    watcher.start()
    for number in range(50):
        replace(path, str(number), kind)
    done.set()
    watcher.join()
    assert not missing
    assert read(path) == "49"
    assert names(tmp_path) == ["rows"]


def start_together(program, *arguments):
    """What processes of a program print that begin at one moment, one for each tuple of arguments."""
    processes = []
    for words in arguments:
        command = [sys.executable, "-c", program, *map(str, words)]
        processes.append(
            subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        )
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    printed = [process.communicate(timeout=60)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes)
    return printed


RACE = """
import ctypes, sys
from pathlib import Path
from mmcnb.errors import InputError
from mmcnb.stores.atomic import AtomicOutput

folder, name, kind, steps, overwrite = sys.argv[1:]
if steps == "several steps":
    ctypes.CDLL = None  # as on other systems
outputs = [AtomicOutput(Path(folder) / "rows", overwrite == "yes") for _ in range(20)]
print("ready", flush=True)
sys.stdin.readline()
won = 0
for output in outputs:
    try:
        with output:
            path = output.path
            if kind == "folder":
                path.mkdir()
                path = path / "zarr.json"
            path.write_text(name)
        won += 1
    except InputError as error:
        assert "exists already" in str(error), error
print(won)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "overwrite", "steps"),
    [
        ("folder", "yes", "one step"),
        ("file", "yes", "several steps"),
        ("folder", "no", "several steps"),
    ],
)
def test_processes_that_write_one_output_at_once(tmp_path, kind, overwrite, steps):
    """One wins, or with overwrite each; the losers say so, and nothing else is left."""
    won = start_together(
        RACE, *((tmp_path, name, kind, steps, overwrite) for name in "ab")
    )
    assert sum(map(int, won)) == (40 if overwrite == "yes" else 1)
    assert read(tmp_path / "rows") in {"a", "b"}
    assert names(tmp_path) == ["rows"]


PAIRS = """
import ctypes, sys, time
from pathlib import Path
from mmcnb.stores.atomic import AtomicOutput, together

folder, before, after = Path(sys.argv[1]), *map(float, sys.argv[2:])
ctypes.CDLL = None  # as on other systems, which rename in several steps; these are slow
rename = Path.rename

def slowly(self, target):
    rename(self, target)
    time.sleep(after)

Path.rename = slowly
outputs = [AtomicOutput(folder / one, overwrite=True) for one in ("model", "labels")]
print("ready", flush=True)
sys.stdin.readline()
with together(outputs):
    for output in outputs:
        output.path.write_text(str(before))
    time.sleep(before)
"""


@pytest.mark.slow
def test_two_outputs_are_always_those_of_one_process(tmp_path):
    """One replaces both while the other is between its two, if nothing keeps them apart."""
    start_together(PAIRS, (tmp_path, 0, 1), (tmp_path, 0.4, 0.1))
    assert read(tmp_path / "model") == read(tmp_path / "labels")
    assert names(tmp_path) == ["labels", "model"]


# What killed processes leave

KILL = """
import ctypes, os, signal, sys
from pathlib import Path
from mmcnb.stores.atomic import AtomicOutput

def killed():
    os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))

target, moment = sys.argv[1:]
mkdir, rename = Path.mkdir, Path.rename
if moment == "locking":
    Path.mkdir = lambda self, *how, **more: killed() if self.name == "new" else mkdir(self, *how, **more)
if moment == "replacing":
    ctypes.CDLL = None  # as on systems that replace in several steps
    Path.rename = lambda self, place: rename(self, place) if place.name == "old" else killed()
with AtomicOutput(target, overwrite=True) as output:
    output.path.mkdir()
    (output.path / "zarr.json").touch()
    if moment == "writing":
        killed()
"""


def kill(target, moment="writing"):
    subprocess.run([sys.executable, "-c", KILL, str(target), moment], check=False)


def left_in(folder, clean=False):
    """Of each leftover: the output that it is of, its owner, and what became of it."""
    return [(one["of"], one["owner"], one["done"]) for one in leftovers(folder, clean)]


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["locking", "writing"])
def test_what_a_killed_process_left_is_named_and_removed(tmp_path, moment):
    kill(tmp_path / "rows.zarr", moment)
    for _ in range(2):
        assert left_in(tmp_path) == [("rows.zarr", GONE, None)]
    assert left_in(tmp_path, clean=True) == [("rows.zarr", GONE, "removed")]
    assert names(tmp_path) == []


def test_a_process_killed_in_its_first_moment_leaves_an_empty_folder(tmp_path):
    (tmp_path / ".part-rows.zarr").mkdir()
    assert left_in(tmp_path) == [("rows.zarr", GONE, None)]
    assert left_in(tmp_path, clean=True) == [("rows.zarr", GONE, "removed")]
    assert names(tmp_path) == []


def test_the_next_writer_clears_away_what_a_killed_one_left(tmp_path):
    kill(tmp_path / "rows.zarr")
    with AtomicOutput(tmp_path / "rows.zarr") as output:
        assert list(output.path.parent.iterdir()) == []
        write(output.path, "new", "folder")
    assert names(tmp_path) == ["rows.zarr"]
    assert read(tmp_path / "rows.zarr") == "new"


@pytest.mark.slow
@pytest.mark.parametrize("by", ["doctor", "the next writer"])
def test_an_old_output_that_a_killed_process_had_moved_away_is_put_back(tmp_path, by):
    path = tmp_path / "rows.zarr"
    write(path, "old", "folder")
    kill(path, "replacing")
    assert not path.exists()
    assert left_in(tmp_path) == [("rows.zarr", GONE, None)]
    if by == "doctor":
        assert left_in(tmp_path, clean=True) == [("rows.zarr", GONE, "put back")]
    else:
        with pytest.raises(InputError, match="exists already"):
            replace(path, "new", overwrite=False)
    assert read(path) == "old"
    assert names(tmp_path) == ["rows.zarr"]


def test_what_a_living_process_writes_is_not_touched(tmp_path):
    code = """
    import sys
    from mmcnb.stores.leftovers import leftovers
    print(*(f"{one['owner']}, {one['done']}" for clean in (0, 1) for one in leftovers(sys.argv[1], clean)))
    """
    command = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path)]
    with AtomicOutput(tmp_path / "rows") as output:
        write(output.path, "new")
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        assert done.stdout == f"{ALIVE}, None {ALIVE}, None\n"
    assert read(tmp_path / "rows") == "new"
    assert names(tmp_path) == ["rows"]


def test_an_output_that_another_process_writes_is_refused_after_a_while(tmp_path):
    other = AtomicOutput(tmp_path / "rows")
    # Internal: the ten seconds that a writer waits have no option.
    other._lock.timeout = 0.1
    with AtomicOutput(tmp_path / "rows") as output:
        write(output.path, "new")
        with (
            pytest.raises(
                InputError,
                match=r"rows is being written by another process: wait for it",
            ),
            other,
        ):
            pass
    assert read(tmp_path / "rows") == "new"
    assert names(tmp_path) == ["rows"]


def test_what_an_earlier_version_left_is_named_and_kept(tmp_path):
    write(tmp_path / ".part-00000000-old.zarr", "half", "folder")
    write(tmp_path / ".part-00000000-old.model", "half")
    write(tmp_path / ".old-00000000-kept.zarr", "old", "folder")
    before = names(tmp_path)
    for clean in (False, True):
        assert [(owner, done) for _, owner, done in left_in(tmp_path, clean)] == [
            (UNKNOWN, None)
        ] * 3
        assert names(tmp_path) == before


INTERRUPT = """
import sys
from mmcnb.stores import LabelsWriter, create_dense_store
from mmcnb.stores.atomic import scratch_folder

folder = sys.argv[1]
begun = [
    create_dense_store(folder + "/rows.zarr", 2).__enter__(),
    LabelsWriter(folder + "/labels.zarr", 3).__enter__(),
    scratch_folder(folder, "work"),
]
begun[-1].__enter__()
raise KeyboardInterrupt  # before a with block has taken any of them
"""


def test_an_interrupt_in_the_first_moment_of_a_writer_leaves_nothing(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPT, str(tmp_path)], capture_output=True, text=True
    )
    assert "KeyboardInterrupt" in done.stderr
    assert names(tmp_path) == []


def test_an_interrupt_while_the_old_output_is_removed_leaves_the_new_one_alone(
    tmp_path, monkeypatch
):
    path = tmp_path / "rows"
    write(path, "old", "folder")
    remove = shutil.rmtree
    asked = []

    def interrupted(folder, **options):
        asked.append(folder)
        if len(asked) == 1:
            raise KeyboardInterrupt
        remove(folder, **options)

    monkeypatch.setattr(shutil, "rmtree", interrupted)
    with pytest.raises(KeyboardInterrupt):
        replace(path, "new", "folder")
    assert read(path) == "new"
    assert names(tmp_path) == ["rows"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a fork is POSIX's")
def test_a_fork_leaves_what_its_parent_writes(tmp_path):
    code = """
    import os, sys
    from mmcnb.stores.atomic import AtomicOutput
    with AtomicOutput(sys.argv[1]) as output:
        output.path.write_text("whole")
        if os.fork() == 0:
            sys.exit()
        assert os.wait()[1] == 0
    """
    subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "rows")],
        check=True,
    )
    assert names(tmp_path) == ["rows"]


def test_what_cannot_be_removed_is_told_and_changes_no_success(tmp_path, monkeypatch):
    path = tmp_path / "notes"
    remove = shutil.rmtree

    def failing(folder, **options):
        if path.exists():
            raise PermissionError(errno.EACCES, "Permission denied", str(folder))
        remove(folder, **options)

    monkeypatch.setattr(shutil, "rmtree", failing)
    with pytest.warns(
        UserWarning,
        match=r"could not be removed \(Permission denied\); mmcnb doctor --clean",
    ):
        replace(path, "whole")
    assert read(path) == "whole"
    monkeypatch.undo()
    [left] = leftovers(tmp_path, clean=True)  # the remedy
    assert (left["owner"], left["done"], names(tmp_path)) == (
        GONE,
        "removed",
        ["notes"],
    )


@pytest.mark.skipif(os.name != "posix", reason="links need rights on other systems")
def test_a_link_that_is_named_like_a_leftover_is_left_alone(tmp_path):
    for name in ("new", "old"):
        (tmp_path / "mine" / name).mkdir(parents=True)
        (tmp_path / "mine" / name / "thesis").write_text("years of work")
    (tmp_path / "outputs").mkdir()
    (tmp_path / "outputs/.part-labels.zarr").symlink_to(tmp_path / "mine")
    assert leftovers(tmp_path / "outputs", clean=True) == []
    assert [read(tmp_path / "mine" / name / "thesis") for name in ("new", "old")] == [
        "years of work"
    ] * 2
    assert names(tmp_path / "outputs") == [".part-labels.zarr"]


@pytest.mark.filterwarnings("ignore:.*could not be removed")
def test_a_lock_that_cannot_be_removed_is_let_go(tmp_path, monkeypatch):
    """Another writer of this process may begin, whatever has failed while the first one cleared away."""

    def fail(path, **_):
        raise OSError(errno.EIO, "Input/output error", str(path))

    output = AtomicOutput(tmp_path / "out")
    with monkeypatch.context() as failing, suppress(RuntimeError), output:
        failing.setattr(os, "unlink", fail)
        raise RuntimeError
    assert names(tmp_path) != []  # that it could not remove
    replace(tmp_path / "out", "new", overwrite=False)
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize(
    "error",
    [
        OSError("odd"),
        TimeoutError(errno.ETIMEDOUT, "timed out"),
        OSError(errno.EIO, "bad"),
    ],
)
def test_only_a_lock_says_that_another_process_writes(error):
    with (
        pytest.raises(
            InputError, match=r"^a could not be written \(.*\): choose a writable path"
        ),
        writing("a"),
    ):
        raise error
    with (
        pytest.raises(InputError, match=r"^a is being written by another process"),
        writing("a"),
    ):
        raise TimeoutError
