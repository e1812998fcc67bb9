"""Files that appear complete or not at all."""

import pytest

from mmcnb.errors import InputError
from mmcnb.samples.atomic import AtomicOutput, atomic_write


@pytest.mark.parametrize("sync", [False, True])
def test_a_file_appears_when_it_is_complete(tmp_path, sync):
    path = tmp_path / "notes"
    with atomic_write(path, sync=sync) as file:
        file.write(b"new")
        assert not path.exists()
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, OSError])
def test_after_an_error_the_old_file_stands_alone(tmp_path, error):
    path = tmp_path / "notes"
    path.write_bytes(b"old")

    def write():
        with atomic_write(path) as file:
            file.write(b"new")
            raise error

    with pytest.raises(error):
        write()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_fixed_part_is_overwritten(tmp_path):
    path, part = tmp_path / "notes", tmp_path / "notes.part"
    part.write_bytes(b"left by a process that was killed")
    with atomic_write(path, part=part) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_an_output_that_appears_meanwhile_is_kept(tmp_path):
    def write():
        with AtomicOutput(tmp_path / "notes") as output:
            output.path.write_bytes(b"new")
            output.target.write_bytes(b"of another process")

    with pytest.raises(InputError, match="exists already"):
        write()
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"of another process"]
