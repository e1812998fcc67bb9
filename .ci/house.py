"""Figures of the code: its size, its longest functions, and how many files one fit goes through.

Run from the root of the tree: ``python .ci/house.py [--check] [--edges] [--root DIR]``.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import subprocess
import sys
import tempfile
import threading
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

PARTS = ("mmcnb", "benchmarks", "data_loaders", "tests")
SHIPPED = ("mmcnb", "data_loaders", "benchmarks")
MOST_FILE_LINES = 400
# What a default fit goes through. The goals are 28 files and 60 calls. The limits rose from 35 and 87 when a
# fit began to tell compilation apart, to estimate its stages and to say what spoils it; and by 1 and 2 when
# the rules of values got a file of their own, for graphs, selection and displays too; and by 1 and 3 when the
# rounds on a sample were compiled, and the bandwidths compared in threads; and by 3 calls when few rows were
# taken into memory as the second sample of many is. They may fall.
MOST_FIT_FILES, MOST_FIT_CALLS = 43, 106
LAYOUT = tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DUPLICATES = [
    *("--disable=all", "--enable=duplicate-code", "--min-similarity-lines=6", "--ignore-docstrings=y"),
    *("--ignore-imports=y", "--ignore-comments=y", "--ignore-signatures=n"),
]
BRANCHES = [
    *("--isolated", "--no-cache", "--ignore-noqa", "--output-format=json"),
    *("--select=PLR0912", "--config=lint.pylint.max-branches=0"),
]


@dataclass(frozen=True)
class Figure:
    """One row of the table; a figure with a limit is gated."""

    name: str
    value: int | str
    limit: int | None = None
    note: str = ""

    @property
    def fails(self) -> bool:
        return self.limit is not None and int(self.value) > self.limit


def sources(root: Path, *parts: str) -> Iterator[tuple[Path, str]]:
    for part in parts:
        for path in sorted((root / part).rglob("*.py")):
            yield path.relative_to(root), path.read_text(encoding="utf-8")


def docstring(node: ast.AST) -> ast.stmt | None:
    holds = isinstance(node, (ast.Module, ast.ClassDef, *FUNCTIONS))
    return node.body[0] if holds and ast.get_docstring(node, clean=False) is not None else None


def nodes(root: Path, part: str) -> Iterator[tuple[Path, ast.AST]]:
    return ((path, node) for path, text in sources(root, part) for node in ast.walk(ast.parse(text)))


def code_lines(text: str) -> int:
    """Physical lines that carry a token of code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in (tokenize.COMMENT, *LAYOUT):
            lines.update(range(token.start[0], token.end[0] + 1))
    for stated in filter(None, map(docstring, ast.walk(ast.parse(text)))):
        lines.difference_update(range(stated.lineno, stated.end_lineno + 1))
    return len(lines)


def longest_body(root: Path) -> tuple[int, str]:
    """Lines from the first statement after the docstring to the end, and where they are."""
    found = []
    for path, node in nodes(root, "mmcnb"):
        if isinstance(node, FUNCTIONS):
            body = node.body[1:] if docstring(node) else node.body
            lines = body[-1].end_lineno - body[0].lineno + 1 if body else 0
            found.append((lines, f"{path}:{node.lineno} {node.name}"))
    return max(found)


def is_assertion(node: ast.AST) -> bool:
    called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
    return isinstance(node, ast.Assert) or called in ("pytest.raises", "pytest.warns")


def run(root: Path, *command: str) -> str:
    """What a Python module prints. Linters exit with an error when they find something."""
    command = (sys.executable, *command)
    return subprocess.run(command, cwd=root, stdout=subprocess.PIPE, text=True, check=False).stdout


def most_branches(root: Path) -> tuple[int, str]:
    """Ruff counts them itself, so that the figure is the one its rule would refuse."""
    printed = run(root, "-m", "ruff", "check", *BRANCHES, "mmcnb")
    found = []
    for problem in json.loads(printed):
        path = Path(problem["filename"]).relative_to(root)
        branches = int(re.search(r"\((\d+) > 0\)", problem["message"])[1])
        found.append((branches, f"{path}:{problem['location']['row']}"))
    return max(found)


def repeated(root: Path) -> int | str:
    if find_spec("pylint") is None:
        return "pylint is not installed"
    return run(root, "-m", "pylint", *DUPLICATES, *SHIPPED).count("R0801")


def measured(root: Path, what: str) -> object:
    """A figure that needs mmcnb of that tree imported, from a process of its own."""
    command = ("--root", str(root), "--measure", what)
    return json.loads(run(root, str(Path(__file__).resolve()), *command))


def cycles(root: Path) -> list[list[str]]:
    """Groups of files that import one another, also from within functions."""
    sys.path.insert(0, str(root))
    import grimp

    graph = grimp.build_graph("mmcnb", exclude_type_checking_imports=True, cache_dir=None)
    upstream, downstream = graph.find_upstream_modules, graph.find_downstream_modules
    groups = {frozenset((upstream(name) & downstream(name)) | {name}) for name in graph.modules}
    return sorted(sorted(group) for group in groups if len(group) > 1)


def blobs(path: str) -> None:
    import numpy as np

    from mmcnb.stores import create_dense_store

    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 4)) + 4 * rng.integers(0, 2, (6000, 1))
    with create_dense_store(path, 4, dtype="float64") as writer:
        writer.append(X)


class Trace:
    """Files of mmcnb in which a Python function is called, and the calls from file to file.

    The caller is the nearest frame of mmcnb on the stack: a call by way of a pool, a decorator or a built-in
    is a call all the same. What a thread starts with has no caller. Taking only the frame directly above
    gave the same figures where both were counted.
    """

    def __init__(self, package: Path) -> None:
        self.package = f"{package}/"
        self.files: set[str] = set()
        self.edges: set[tuple[str, str]] = set()

    def __call__(self, frame, event, argument) -> None:
        name = self.file(frame)
        if event != "call" or name is None or frame.f_code.co_name == "<module>":
            return
        self.files.add(name)
        caller = frame.f_back
        while caller is not None and self.file(caller) is None:
            caller = caller.f_back
        if caller is not None and self.file(caller) != name:
            self.edges.add((self.file(caller), name))

    def file(self, frame) -> str | None:
        path = frame.f_code.co_filename
        return path.removeprefix(self.package) if path.startswith(self.package) else None


def fit(root: Path) -> dict[str, list[str]]:
    sys.path.insert(0, str(root))
    import mmcnb

    if Path(mmcnb.__file__).parent != root / "mmcnb":
        raise SystemExit(f"{mmcnb.__file__} was imported in place of the one in {root}.")
    trace = Trace(root / "mmcnb")
    with tempfile.TemporaryDirectory() as folder:
        store = f"{folder}/blobs.zarr"
        blobs(store)
        mmcnb.SparseKernelMMC(random_state=0).fit(store)  # imports and compiles what the fit needs
        threading.setprofile(trace)
        sys.setprofile(trace)
        mmcnb.SparseKernelMMC(random_state=0).fit(store)
        sys.setprofile(None)
        threading.setprofile(None)
    calls = [f"{caller} -> {called}" for caller, called in sorted(trace.edges)]
    return {"files": sorted(trace.files), "calls": calls}


MEASURES = {"fit": fit, "cycles": cycles}


def figures(root: Path, traced: dict[str, list[str]], gated_only: bool) -> Iterator[Figure]:
    if not gated_only:
        for part in PARTS:
            yield Figure(f"code lines of {part}", sum(code_lines(text) for _, text in sources(root, part)))
    yield Figure("files of a default fit", len(traced["files"]), MOST_FIT_FILES)
    yield Figure("calls from file to file of a default fit", len(traced["calls"]), MOST_FIT_CALLS)
    lines, place = longest_body(root)
    yield Figure("lines of the longest function body", lines, 50, place)
    branches, place = most_branches(root)
    yield Figure("most branches in one function", branches, 15, place)
    lengths = {str(path): len(text.splitlines()) for path, text in sources(root, *SHIPPED)}
    long = [f"{path} {length}" for path, length in lengths.items() if length > MOST_FILE_LINES]
    yield Figure(f"files over {MOST_FILE_LINES} lines", len(long), 0, ", ".join(long))
    loops = measured(root, "cycles")
    yield Figure("import cycles", len(loops), 0, "; ".join(map(", ".join, loops)))
    if not gated_only:
        yield Figure("repeated passages of six lines", repeated(root))
        yield Figure("assertions of the tests", sum(is_assertion(node) for _, node in nodes(root, "tests")))


def show(found: list[Figure], traced: dict[str, list[str]]) -> None:
    for figure in found:
        limit = "" if figure.limit is None else f"at most {figure.limit}"
        print(f"{figure.name:42}{figure.value:>8}  {limit:12}  {figure.note}".rstrip())
    for lines in traced.values():
        print("", *lines, sep="\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=".", help="tree to measure")
    parser.add_argument("--check", action="store_true", help="gated figures alone; fails over a limit")
    parser.add_argument("--edges", action="store_true", help="list the files and calls of the fit")
    parser.add_argument("--measure", choices=MEASURES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    root = options.root.resolve()
    if options.measure:
        print(json.dumps(MEASURES[options.measure](root)))
        return 0
    traced = measured(root, "fit")
    found = list(figures(root, traced, options.check))
    show(found, traced if options.edges else {})
    failures = [figure for figure in found if figure.fails] if options.check else []
    for figure in failures:
        said = f"{figure.name}: {figure.value}, and at most {figure.limit} are allowed. {figure.note}"
        print(said.rstrip(), file=sys.stderr)
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
