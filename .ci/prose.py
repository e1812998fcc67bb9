"""Prose of the project, and how often it uses a few words that plain English needs seldom.

People read docstrings without their examples, comments, messages, and pages without their code.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOMS = ("mmcnb", "data_loaders", "benchmarks")
# Per thousand words; of decimals, those without their zero.
COUNTED = {
    "where": r"\bwhere\b",
    "hold": r"\b(?:hold|holds|held|holding)\b",
    "what": r"\bwhat\b",
    "decimals without a zero": r"(?<![\w.`'\"/*-])-?\.\d+\b",
}
WORD = re.compile(r"[A-Za-z][A-Za-z'-]*|\d[\d.,]*")
SENTENCE = re.compile(r"\S+(?: \S+){2,}")  # three words or more; shorter strings are names and keys
CODE = re.compile(r"``[^`]*``|`[^`]*`|https?://\S+")


def of_docstring(text: str) -> str:
    """A docstring without examples and code."""
    kept, skipping = [], False
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith(">>>"):
            skipping = True
        elif not stripped:
            skipping = False
        if not skipping:
            kept.append(line)
    return CODE.sub(" ", "\n".join(kept))


def of_page(text: str) -> str:
    """A page of Markdown without code, directives and targets of links."""
    text = re.sub(r"^(`{3,}|:{3,}).*?^\1\s*$", " ", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"\]\([^)]*\)", "]", CODE.sub(" ", text))


def docstrings(tree: ast.Module) -> dict[int, str]:
    """Docstrings by the identity of their nodes."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            found[id(node.body[0].value)] = node.body[0].value.value
    return found


def of_source(text: str) -> Iterator[str]:
    """Docstrings, strings that read like sentences, and comments of Python code."""
    tree = ast.parse(text)
    documented = docstrings(tree)
    yield from map(of_docstring, documented.values())
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in documented and SENTENCE.search(node.value):
            yield CODE.sub(" ", node.value)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and not token.string.startswith(("#!", "# noqa", "# type:")):
            yield CODE.sub(" ", token.string.lstrip("#"))


def pages(root: Path) -> list[Path]:
    """The pages that people write: those of the documentation, and the README."""
    return [*sorted((root / "docs").glob("*.md")), root / "README.md"]


def prose(root: Path) -> str:
    """All prose of a tree in one text."""
    sources = (path for room in ROOMS for path in sorted((root / room).rglob("*.py")))
    parts = [part for path in sources for part in of_source(path.read_text(encoding="utf-8"))]
    parts += [of_page(path.read_text(encoding="utf-8")) for path in pages(root)]
    return "\n".join(parts)


def per_thousand_words(text: str) -> dict[str, float]:
    """How often each counted expression comes, per thousand words."""
    words = len(WORD.findall(text)) or 1
    return {
        name: 1000 * len(re.findall(pattern, text, re.IGNORECASE)) / words
        for name, pattern in COUNTED.items()
    }
