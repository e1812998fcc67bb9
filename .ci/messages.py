"""Every sentence that an error or a warning can say, one a line, with {} where a value stands.

``python .ci/messages.py [ROOT]`` prints those of a tree; ``python .ci/messages.py --compare BEFORE AFTER``
prints how two such lists differ, and fails if they do.
"""

from __future__ import annotations

import ast
import difflib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

PARTS = ("mmcnb", "data_loaders", "benchmarks")
SENTENCE = re.compile(r"\S+( \S+){2,}\.")  # three words or more and a full stop, wherever it is said from


def template(node: ast.AST) -> str:
    """The text of an expression, with {} for what is not written in it."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(map(template, node.values))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return template(node.left) + template(node.right)
    return "{}"


def strings(node: ast.AST, said: bool = False) -> Iterator[str]:
    """Strings in a node that are raised or warned of, and other ones that are sentences."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return  # a docstring
    text = template(node).strip()
    if re.search("[a-z]", text):
        if said or SENTENCE.fullmatch(text.replace("\n", " ")):
            yield text
        return
    said = isinstance(node, ast.Raise) or (said and isinstance(node, ast.Call))
    said = said or (isinstance(node, ast.Call) and ast.unparse(node.func).endswith("warn"))
    for child in ast.iter_child_nodes(node):
        yield from strings(child, said)


def messages(root: Path) -> list[str]:
    paths = (path for part in PARTS for path in (root / part).rglob("*.py"))
    return sorted(
        {text.replace("\n", "\\n") for path in paths for text in strings(ast.parse(path.read_text()))}
    )


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--compare"]:
        before, after = (Path(name).read_text().splitlines() for name in arguments[1:])
        lines = list(difflib.unified_diff(before, after, *arguments[1:], lineterm="", n=0))
    else:
        lines = messages(Path(*arguments))
    for line in lines:
        print(line)
    return int(bool(lines) and arguments[:1] == ["--compare"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
