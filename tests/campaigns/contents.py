"""What outputs say, as digests: two that say the same are equal, whatever they tell of the work."""

import json
from hashlib import blake2b
from pathlib import Path

import pandas as pd

# told of work, not of the answer
DONE = [
    "reads",
    "sweeps",
    "bytes",
    "resumed",
    "seconds",
    "compile_seconds",
    "labels_seconds",
]


def content(path: Path) -> str:
    """A digest of what an output says, without the times that it tells."""
    if not path.exists():
        return "absent"
    if path.name == "model":
        return model_digest(path)
    if path.name == "tiny.parquet":
        return digest_of("".join(objectives(path)).encode())
    return digest_of(json.dumps(digests(path)).encode())


def objectives(path: Path) -> list[str]:
    """What the frame of a study says of each seed; none where there is no frame."""
    if not path.exists():
        return []
    frame = pd.read_parquet(path)
    found = frame.loc[frame["metric"] == "objective", ["seed", "value"]].sort_values(
        "seed"
    )
    return found.to_csv(index=False).splitlines(keepends=True)[1:]


def model_digest(path: Path) -> str:
    """A digest of a model file, but for what it tells of the work."""
    from mmcnb.features.model import read_model

    header, arrays = read_model(path)
    history = {
        name: column for name, column in header["history"].items() if name not in DONE
    }
    report = {
        name: value for name, value in header["report"].items() if name not in DONE
    }
    if "candidates" in report:
        report["candidates"] = [one | {"seconds": None} for one in report["candidates"]]
    told = json.dumps(header | {"history": history, "report": report}, sort_keys=True)
    return digest_of(
        told.encode() + b"".join(arrays[name].tobytes() for name in sorted(arrays))
    )


def digests(path: Path) -> dict[str, str]:
    """A digest of each file under a path."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return {
        str(file.relative_to(path)): digest_of(file.read_bytes())
        for file in files
        if file.is_file()
    }


def digest_of(content: bytes) -> str:
    """blake2b as text."""
    return blake2b(content, digest_size=16).hexdigest()
