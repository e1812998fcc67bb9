"""Tests that the tables of the documentation name are there: python .ci/differences.py, from any folder.

Each row of ``docs/differences.csv`` is whole, and names a test or a study that exists;
the docstring of each method it concerns names the row. Files of tests in
``docs/questions.csv`` exist. It prints a sentence for each fault, and exits with 1 if
there is one.
"""

import ast
import csv
import inspect
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COLUMNS = ["id", "paper", "place", "the paper", "mmcnb", "why", "shown by", "concerns"]
NO_METHOD = "studies"  # of rows that are about no method
OTHERS = {
    "MaximumMarginClustering",
    "GowerMedoids",
    "Kamila",
}  # no methods of these papers


@cache
def tests_of(path: str) -> set[str]:
    """Names of the tests in a file; none if there is no such file."""
    file = ROOT / path
    tree = ast.parse(file.read_text(encoding="utf-8") if file.exists() else "")
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def faults_of_table(rows: list[list[str]]) -> Iterator[str]:
    """Rows that are not whole, or have the name of another."""
    names: set[str] = set()
    for row in rows:
        if len(row) != len(COLUMNS) or not all(cell.strip() for cell in row):
            yield f"{row[0]} is no row of {len(COLUMNS)} texts."
        if not re.fullmatch(r"[A-Z]+-[1-9]\d*", row[0]) or row[0] in names:
            yield f"{row[0]} is no name, or stands twice."
        names.add(row[0])


def faults_of_evidence(
    rows: list[dict[str, str]], studies: tuple[str, ...]
) -> Iterator[str]:
    """Rows whose test or study is not there."""
    for row in rows:
        shown = row["shown by"].strip("`")
        path, _, name = shown.partition("::")
        if shown.startswith("benchmarks "):
            if shown.removeprefix("benchmarks ") not in studies:
                yield f"{row['id']}: there is no study {shown}."
        elif name not in tests_of(path):
            yield f"{row['id']}: there is no test {shown}."


def faults_of_methods(rows: list[dict[str, str]]) -> Iterator[str]:
    """Methods whose notes do not name their rows, and methods without a row."""
    import mmcnb
    from benchmarks import baselines

    homes = (mmcnb, baselines)
    methods = sorted(
        {name for row in rows for name in row["concerns"].split()} - {NO_METHOD}
    )
    for method in methods:
        shown = next(
            (getattr(home, method) for home in homes if hasattr(home, method)), None
        )
        notes = " ".join(
            (inspect.getdoc(shown) or "").partition("\nNotes\n-----\n")[2].split()
        )
        told = re.search(
            r"Differs from the paper: ([^;]+); see docs/differences\.", notes
        )
        expected = [row["id"] for row in rows if method in row["concerns"].split()]
        if shown is None or told is None or told[1].split(", ") != expected:
            yield f"{method}: its notes do not name {', '.join(expected)}."
    known = {name for name in mmcnb.__all__ if hasattr(getattr(mmcnb, name), "fit")}
    known |= {name for home in homes[1:] for name in home.__all__ if name[0].isupper()}
    for method in sorted(known - set(methods) - OTHERS):
        yield f"{method} is in no row."


def faults_of_questions() -> Iterator[str]:
    """Answers whose file of tests is not there."""
    with (ROOT / "docs/questions.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            path = row["code"].strip("`")
            if path.startswith("tests/") and not tests_of(path):
                yield f"docs/questions.csv: there is no test in {path}, for {row['question']}"


def main() -> int:
    """Print the faults.

    Returns
    -------
    int
        1 if there is one, else 0.
    """
    sys.path.insert(0, str(ROOT))
    from benchmarks.__main__ import STUDIES

    with (ROOT / "docs/differences.csv").open(newline="", encoding="utf-8") as file:
        header, *table = csv.reader(file)
    faults = [] if header == COLUMNS else [f"The columns are not {', '.join(COLUMNS)}."]
    faults += faults_of_table(table)
    if not faults:
        rows = [dict(zip(COLUMNS, row, strict=True)) for row in table]
        faults = [*faults_of_evidence(rows, STUDIES), *faults_of_methods(rows)]
    faults = [
        *(f"docs/differences.csv: {fault}" for fault in faults),
        *faults_of_questions(),
    ]
    for fault in faults:
        print(fault)
    print(f"{len(table)} differences, {len(faults)} faults")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
