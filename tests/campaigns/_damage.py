"""Ways to damage a file or a folder; each says what it did, or None where there is nothing to do it to."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

DOCUMENTS = ("zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata", "run.json")
TEXTS = (
    None,
    True,
    False,
    "",
    "a",
    "../../outside",
    "http://127.0.0.1:9/x",
    "NaN",
    [],
    [0],
    {},
    {"a": 1},
)
# no larger ones: a store may have as many rows as it says
NUMBERS = (
    -1,
    0,
    1,
    7,
    977,
    1.5,
)
LARGE = (2**31, 2**63, 10**30, 1e300)

Generator = np.random.Generator
Damage = Callable[[Path, Path, Generator], str | None]


def files_of(root: Path) -> list[Path]:
    """All files of a folder, or the one that a path is."""
    return (
        sorted(path for path in root.rglob("*") if path.is_file())
        if root.is_dir()
        else [root]
    )


def drawn(files: list[Path], random: Generator) -> Path:
    """One of some files."""
    return files[int(random.integers(len(files)))]


def flip(root: Path, other: Path, random: Generator) -> str | None:
    """Turn one bit of one file."""
    file = drawn([file for file in files_of(root) if file.stat().st_size], random)
    whole = bytearray(file.read_bytes())
    place = int(
        random.integers(min(len(whole), 24) if random.random() < 0.2 else len(whole))
    )
    whole[place] ^= 1 << int(random.integers(8))
    file.write_bytes(whole)
    return f"bit of byte {place} of {_name(file, root)}"


def truncate(root: Path, other: Path, random: Generator) -> str | None:
    """Cut one file."""
    file = drawn(files_of(root), random)
    whole = file.read_bytes()
    kept = (
        int(random.integers(len(whole)))
        if len(whole) > 1 and random.random() < 0.8
        else 0
    )
    file.write_bytes(whole[:kept])
    return f"{kept} of {len(whole)} bytes of {_name(file, root)}"


def grow(root: Path, other: Path, random: Generator) -> str | None:
    """Append bytes to one file."""
    file = drawn(files_of(root), random)
    with file.open("ab") as out:
        out.write(random.bytes(int(random.integers(1, 40))))
    return f"longer {_name(file, root)}"


def hole(root: Path, other: Path, random: Generator) -> str | None:
    """Set some bytes of one file to 0, as a disk does that lost a block."""
    file = drawn([file for file in files_of(root) if file.stat().st_size], random)
    whole = bytearray(file.read_bytes())
    begin = int(random.integers(len(whole)))
    end = min(len(whole), begin + int(random.integers(1, 200)))
    whole[begin:end] = bytes(end - begin)
    file.write_bytes(whole)
    return f"bytes {begin} to {end} of {_name(file, root)}"


def delete(root: Path, other: Path, random: Generator) -> str | None:
    """Remove one file."""
    if not root.is_dir():
        return None
    file = drawn(files_of(root), random)
    file.unlink()
    return f"no {_name(file, root)}"


def swap(root: Path, other: Path, random: Generator) -> str | None:
    """Exchange two files of one kind: two chunks, mostly of one array, or two passes of a checkpoint."""
    chunks = [file for file in files_of(root) if file.name not in (*DOCUMENTS, "lock")]
    first = drawn(chunks, random)
    near = [
        file for file in chunks if file.stat().st_size and _array(file) == _array(first)
    ]
    second = drawn(near if len(near) > 1 and random.random() < 0.8 else chunks, random)
    held = first.read_bytes()
    if held == second.read_bytes():
        return None
    first.write_bytes(second.read_bytes())
    second.write_bytes(held)
    return f"{_name(first, root)} and {_name(second, root)} exchanged"


def stale(root: Path, other: Path, random: Generator) -> str | None:
    """Put a file of another version in place of one."""
    if not root.is_dir():  # then it is the other version
        return None
    file = drawn(
        [file for file in files_of(root) if (other / file.relative_to(root)).is_file()],
        random,
    )
    source = other / file.relative_to(root)
    if source.read_bytes() == file.read_bytes():
        return None
    shutil.copyfile(source, file)
    return f"{_name(file, root)} of another version"


def metadata(
    root: Path, other: Path, random: Generator, large: bool = False
) -> str | None:
    """Change one place of a JSON document."""
    documents = [file for file in files_of(root) if file.name in DOCUMENTS]
    if not documents:
        return None
    file = drawn(documents, random)
    document = json.loads(file.read_bytes())
    places = list(_places(document))
    if not places:
        return None
    owner, key = places[int(random.integers(len(places)))]
    values = (*TEXTS, *NUMBERS, *(LARGE if large else ()))
    before = owner[key]
    value = values[int(random.integers(len(values)))]
    action = ("set", "set", "remove", "rename")[int(random.integers(4))]
    if action == "remove":
        del owner[key]
    elif action == "rename" and isinstance(owner, dict):
        owner[f"{key}_"] = owner.pop(key)
    else:
        owner[key] = value
    file.write_text(json.dumps(document))
    return (
        f"{action} {key!r} of {_name(file, root)} from {str(before)[:60]} to {value!r}"
    )


def metadata_of_checked(root: Path, other: Path, random: Generator) -> str | None:
    """As `metadata`, with numbers that no memory could hold."""
    return metadata(root, other, random, large=True)


def _places(value: Any) -> Any:
    """All containers and keys of a document."""
    keys = (
        list(value)
        if isinstance(value, dict)
        else range(len(value))
        if isinstance(value, list)
        else []
    )
    for key in keys:
        yield value, key
        yield from _places(value[key])


def _array(file: Path) -> str:
    """The folder of the array that a chunk is of."""
    return file.as_posix().rpartition("/c/")[0] or file.parent.as_posix()


def _name(file: Path, root: Path) -> str:
    return file.relative_to(root).as_posix() if root.is_dir() else file.name
