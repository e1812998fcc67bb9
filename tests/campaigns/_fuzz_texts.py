"""CSV and LIBSVM texts of known numbers, sound and spoiled."""

import functools
from pathlib import Path
from typing import Any

import numpy as np

import mmcnb
from mmcnb.samples import open_samples
from mmcnb.stores import convert, open_class_labels
from tests.campaigns._judge import judged, one_of, refusal, same_rows

NO_NUMBERS = (
    "1_000",
    "٣",
    "0x1F",
    "1e",
    "--1",
    "1 2",
    "1,5 x",
    "½",
    "1.2.3",
    "e5",
    "+-1",
    "1f",
    "NaN1",
    "\x00",
)
MISSING = ("nan", "inf", "-inf", "NaN", "Infinity", "1e999")


def written(value: float, rng: np.random.Generator) -> str:
    """A number as people and programs write it."""
    text = repr(float(np.float32(value)))
    return one_of(
        rng,
        (
            text,
            f"{text}e0",
            text if text[0] == "-" else f"+{text}",
            f"{float(text):.17e}",
            f"{float(text):.17g}",
        ),
    )


def csv(rng: np.random.Generator, folder: Path) -> dict[str, Any]:
    """A table of known numbers as CSV, which may be spoiled."""
    n = int(rng.integers(1, 30))
    d = int(rng.integers(1, 6))
    numbers = np.round(
        rng.normal(size=(n, d)) * 10.0 ** int(rng.integers(-3, 6)), 3
    ).astype(np.float32)
    cells = [[written(value, rng) for value in row] for row in numbers]
    spoiled = rng.random() < 0.5
    what = "sound"
    if spoiled:
        r = int(rng.integers(n))
        c = int(rng.integers(d))
        what = one_of(rng, ("no number", "missing", "short", "long"))
        if what == "no number":
            cells[r][c] = one_of(rng, NO_NUMBERS)
        elif what == "missing":
            cells[r][c] = one_of(rng, MISSING)
            # a gap takes the median of the others
            if np.isnan(float(cells[r][c])) and n > 1 and d > 1:
                spoiled = False
                others = np.delete(numbers[:, c], r).astype(np.float64)
                numbers[r, c] = np.median(others)
        elif what == "short":
            del cells[r][c]
        else:
            cells[r].insert(c, "1.5")
    # a spoiled first line would be a header
    header = what != "sound" or rng.random() < 0.6
    quote = rng.random() < 0.2
    lines = [",".join(f'"{cell}"' if quote else cell for cell in row) for row in cells]
    lines = [",".join(f"c{k}" for k in range(d)), *lines] if header else lines
    end = one_of(rng, ("\n", "\r\n"))
    text = end.join(lines) + (end if rng.random() < 0.8 else "")
    path = folder / "in.csv"
    path.write_bytes((b"\xef\xbb\xbf" if rng.random() < 0.2 else b"") + text.encode())
    # cells that count 0, 1, 2 are names, as the page on tables says
    if not header and _counts(cells[0]):
        return judged(None, None, "counting cells")
    same = functools.partial(same_rows, expected=numbers, rng=rng)
    refused = refusal(lambda: convert(path, folder / "out.zarr", progress=False))
    # Missing cells are gaps, as is one text among many numbers; texts are categories.
    is_sound = what in ("short", "no number") or (n == 1 and what == "missing")
    if refused is None:
        assert not spoiled or is_sound, f"{what} was taken in {text!r}"
        if not spoiled:
            same(folder / "out.zarr")
            same(path)
        elif n > 1 and (d > 1 or what == "no number"):
            assert open_samples(path).notes, f"{what} was taken in silence"
    else:
        assert {entry.name for entry in folder.iterdir()} == {"in.csv"}, (
            "a refused text left a file"
        )
        # A row without any value is refused only where gaps are filled from other rows.
        assert refusal(lambda: mmcnb.read_table(path, missing="neighbors")), (
            "fit reads what convert refuses"
        )
    return judged(refused, None if is_sound else spoiled, f"CSV, {what}")


def _counts(cells: list[str]) -> bool:
    return [float(cell) for cell in cells] == list(range(len(cells)))


def libsvm(rng: np.random.Generator, folder: Path) -> dict[str, Any]:
    """Sparse rows of known numbers as LIBSVM text, which may be spoiled."""
    n = int(rng.integers(1, 20))
    d = int(rng.integers(1, 9))
    numbers = rng.integers(-50, 50, (n, d)).astype(np.float32) / 4
    numbers[rng.random((n, d)) < 0.5] = 0
    numbers[0, d - 1] = 1.5  # so that the width is known
    classes = rng.integers(-2, 3, n)
    lines = []
    for label, row in zip(classes, numbers, strict=True):
        pairs = [
            f"{column + 1}:{written(value, rng)}"
            for column, value in enumerate(row)
            if value
        ]
        lines.append(" ".join([str(label), *pairs]) + one_of(rng, ("", " ", " # note")))
    spoiled = rng.random() < 0.5
    if spoiled:
        r = int(rng.integers(n))
        lines[r] = lines[r].partition("#")[0] + " " + one_of(rng, LIBSVM_SPOILS)
    path = folder / "in.libsvm"
    path.write_text(one_of(rng, ("\n", "\r\n")).join(lines) + "\n", newline="")
    refused = refusal(
        lambda: convert(path, folder / "out.zarr", layout="csr", progress=False)
    )
    if refused is None and not spoiled:
        same_rows(folder / "out.zarr", numbers, rng)
        assert np.array_equal(open_class_labels(folder / "out.zarr"), classes), (
            "other classes"
        )
    if refused is not None:
        assert {entry.name for entry in folder.iterdir()} == {"in.libsvm"}, (
            "a refused text left a file"
        )
    return judged(refused, spoiled, "LIBSVM, spoiled" if spoiled else "LIBSVM")


LIBSVM_SPOILS = (
    "0:1",
    "-1:1",
    "a:1",
    "9:1_000",
    "9:٣",
    "9:",
    ":1",
    "9:nan",
    "9:inf",
    "9:0x1F",
    "9:1:2",
    "9.5:1",
    "9",
)
