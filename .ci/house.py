"""Figures of the house: its size, its shape, how many files a fit goes through, and its English.

Run from the root of the tree: ``python .ci/house.py [--check] [--edges] [--root DIR]``. Limits stand in
``.ci/limits.toml``, each with a date and a reason. They only fall: one that is
higher than in an earlier commit fails.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import io
import json
import re
import subprocess
import sys
import tempfile
import threading
import tokenize
import tomllib
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import prose

PARTS = ("mmcnb", "benchmarks", "data_loaders", "tests")
SHIPPED = ("mmcnb", "data_loaders", "benchmarks")
PUBLIC = (
    "baselines",
    "datasets",
    "kernels",
    "metrics",
    "plotting",
    "samples",
    "stores",
)
LIMITS = ".ci/limits.toml"
LONG_FILE = 400  # lines; only printed
# Fits of a store whose files and calls are counted: the way of any number of clusters, and that of two.
FITS = {"three clusters": {"n_clusters": 3}, "two clusters": {"n_clusters": 2}}
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
    """One row of the table; a figure whose name has a limit is gated."""

    name: str
    value: float | str
    note: str = ""

    @property
    def text(self) -> str:
        return f"{self.value:.2f}" if isinstance(self.value, float) else str(self.value)


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


def code_lines_of(root: Path) -> Iterator[Figure]:
    """Code lines of the library, of its folders, and of what stands beside it."""
    rooms: Counter[str] = Counter()
    for path, text in sources(root, "mmcnb"):
        rooms[f"mmcnb/{path.parts[1]}" if len(path.parts) > 2 else "single files"] += code_lines(text)
    yield Figure("code lines of mmcnb", sum(rooms.values()))
    for room, lines in sorted(rooms.items()):
        yield Figure(f"code lines of {room}", lines)
    for part in PARTS[1:]:
        yield Figure(f"code lines of {part}", sum(code_lines(text) for _, text in sources(root, part)))


def names_in(target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    for one in getattr(target, "elts", ()):
        yield from names_in(one)


def numbers_among_constants(root: Path) -> int:
    """Names of module constants whose value contains a number."""
    found = 0
    for _, text in sources(root, "mmcnb"):
        for node in ast.parse(text).body:
            if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
                continue
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            values = (one.value for one in ast.walk(node.value) if isinstance(one, ast.Constant))
            if any(type(value) in (int, float) for value in values):
                found += sum(name.isupper() for target in targets for name in names_in(target))
    return found


def dependencies(root: Path) -> int:
    """Libraries that an installation without extras brings."""
    return len(tomllib.loads((root / "pyproject.toml").read_text())["project"]["dependencies"])


def words_of_pages(root: Path) -> int:
    """Words of all pages that people write, as ``wc -w`` counts them."""
    return sum(len(path.read_text(encoding="utf-8").split()) for path in prose.pages(root))


def cycles(root: Path) -> list[list[str]]:
    """Groups of files that import one another, also from within functions and for types alone."""
    sys.path.insert(0, str(root))
    import grimp

    graph = grimp.build_graph("mmcnb", cache_dir=None)
    upstream, downstream = graph.find_upstream_modules, graph.find_downstream_modules
    groups = {frozenset((upstream(name) & downstream(name)) | {name}) for name in graph.modules}
    return sorted(sorted(group) for group in groups if len(group) > 1)


def public(root: Path) -> dict[str, object]:
    """The number of public names, and the parameters of each estimator."""
    sys.path.insert(0, str(root))
    import mmcnb

    here = [name for name in PUBLIC if find_spec(f"mmcnb.{name}")]
    modules = [mmcnb, *(import_module(f"mmcnb.{name}") for name in here)]
    classes = {name: getattr(mmcnb, name) for name in mmcnb.__all__ if name[0].isupper()}
    estimators = {name: one for name, one in classes.items() if hasattr(one, "get_params")}
    return {
        "names": sum(not name.startswith("_") for module in modules for name in module.__all__),
        "parameters": {name: len(inspect.signature(one).parameters) for name, one in estimators.items()},
    }


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


def traced(store: str, parameters: dict[str, object], root: Path) -> dict[str, list[str]]:
    """Files and calls of the second fit; the first one imports and compiles all that it needs."""
    import mmcnb

    warnings.simplefilter("ignore")  # made rows may well be ambiguous
    trace, model = Trace(root / "mmcnb"), mmcnb.MaximumMarginClustering(random_state=0, **parameters)
    model.fit(store)
    threading.setprofile(trace)
    sys.setprofile(trace)
    model.fit(store)
    sys.setprofile(None)
    threading.setprofile(None)
    calls = [f"{caller} -> {called}" for caller, called in sorted(trace.edges)]
    return {"files": sorted(trace.files), "calls": calls}


def fits(root: Path) -> dict[str, dict[str, list[str]]]:
    sys.path.insert(0, str(root))
    import mmcnb

    if Path(mmcnb.__file__).parent != root / "mmcnb":
        raise SystemExit(f"{mmcnb.__file__} was imported in place of the one in {root}.")
    with tempfile.TemporaryDirectory() as folder:
        store = f"{folder}/blobs.zarr"
        blobs(store)
        return {name: traced(store, parameters, root) for name, parameters in FITS.items()}


MEASURES = {"fits": fits, "cycles": cycles, "public": public}


def shape_of(root: Path, fitted: dict[str, dict[str, list[str]]]) -> Iterator[Figure]:
    """What a reader meets: files of a fit, functions, files, circles of imports."""
    for name, trace in fitted.items():
        yield Figure(f"files of a fit, {name}", len(trace["files"]))
        yield Figure(f"calls from file to file, {name}", len(trace["calls"]))
    yield Figure("lines of the longest function body", *longest_body(root))
    yield Figure("most branches in one function", *most_branches(root))
    lengths = {str(path): len(text.splitlines()) for path, text in sources(root, *SHIPPED)}
    long = [f"{path} {length}" for path, length in lengths.items() if length > LONG_FILE]
    yield Figure(f"files over {LONG_FILE} lines", len(long), ", ".join(long))
    loops = measured(root, "cycles")
    yield Figure("import cycles", len(loops), "; ".join(map(", ".join, loops)))


def figures(root: Path, fitted: dict[str, dict[str, list[str]]], gated_only: bool) -> Iterator[Figure]:
    yield from code_lines_of(root)
    yield Figure("module constants with a number", numbers_among_constants(root))
    face = measured(root, "public")
    yield Figure("public names", face["names"])
    for name, parameters in face["parameters"].items():
        yield Figure(f"parameters of {name}", parameters)
    yield Figure("core dependencies", dependencies(root))
    yield from shape_of(root, fitted)
    yield Figure("words of pages", words_of_pages(root))
    for name, often in prose.per_thousand_words(prose.prose(root)).items():
        yield Figure(f"{name}, per thousand words", round(often, 2))
    if not gated_only:
        yield Figure("repeated passages of six lines", repeated(root))
        yield Figure("assertions of the tests", sum(is_assertion(node) for _, node in nodes(root, "tests")))


def limits_in(text: str) -> dict[str, float]:
    return {name: limit["most"] for name, limit in tomllib.loads(text).items()}


def with_rooms_together(limits: dict[str, float]) -> dict[str, float]:
    """Limits with one sum for the rooms, if all have a limit: a room may take what another gives up."""
    rooms = {name for name in limits if name.startswith(("code lines of mmcnb/", "code lines of single"))}
    others = {name: most for name, most in limits.items() if name not in rooms}
    total = sum(limits[name] for name in rooms)
    return others | (
        {"code lines of all rooms": total} if total > limits.get("code lines of mmcnb", 0) else {}
    )


def raised_limits(root: Path) -> list[str]:
    """Limits that are higher than in an earlier commit."""

    def git(*words: str) -> str:
        command = ("git", "-C", str(root), *words)
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout

    now, raised = with_rooms_together(limits_in((root / LIMITS).read_text())), []
    for commit in git("log", "--format=%h", "--", LIMITS).split():
        before = with_rooms_together(limits_in(git("show", f"{commit}:{LIMITS}")))
        raised += [
            f"{name}: the limit {now[name]} is higher than {most} in {commit}; limits only fall."
            for name, most in before.items()
            if name in now and now[name] > most
        ]
    return raised


def failures(root: Path, found: list[Figure]) -> list[str]:
    """Figures over their limits, limits of no figure, and limits that rose."""
    limits, values = limits_in((root / LIMITS).read_text()), {figure.name: figure for figure in found}
    unknown = [f"{LIMITS}: {name!r} names no figure." for name in limits if name not in values]
    over = [
        f"{name}: {values[name].text}, and at most {most} are allowed. {values[name].note}".rstrip()
        for name, most in limits.items()
        if name in values and values[name].value > most
    ]
    return over + unknown + raised_limits(root)


def show(found: list[Figure], limits: dict[str, float]) -> None:
    for figure in found:
        limit = f"at most {limits[figure.name]}" if figure.name in limits else ""
        print(f"{figure.name:44}{figure.text:>8}  {limit:14}  {figure.note}".rstrip())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=".", help="tree to measure")
    parser.add_argument("--check", action="store_true", help="gated figures alone; fails over a limit")
    parser.add_argument("--edges", action="store_true", help="list the files and calls of the fits")
    parser.add_argument("--measure", choices=MEASURES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    root = options.root.resolve()
    if options.measure:
        print(json.dumps(MEASURES[options.measure](root)))
        return 0
    fitted = measured(root, "fits")
    found = list(figures(root, fitted, options.check))
    show(found, limits_in((root / LIMITS).read_text()) if (root / LIMITS).exists() else {})
    for name, trace in fitted.items() if options.edges else ():
        print(f"\n{name}", *trace["files"], "", *trace["calls"], sep="\n")
    wrong = failures(root, found) if options.check else []
    print(*wrong, sep="\n", end="\n" * bool(wrong), file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
