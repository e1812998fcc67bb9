"""The mutants of a module: every small change that is tried, and the code of the module with it."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

ROOT = Path(__file__).parent.parent.parent
SWAPS: dict[type, tuple[type, ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div,),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,),
    ast.Mod: (ast.Mult,),
    ast.Pow: (ast.Mult,),
    ast.LShift: (ast.RShift,),
    ast.RShift: (ast.LShift,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
    ast.BitXor: (ast.BitAnd,),
}
OPERATORS = ast.operator | ast.cmpop | ast.boolop
DROPPED = ast.AugAssign | ast.Raise | ast.Break | ast.Continue | ast.Delete
NO_LOGIC = {"annotation", "returns", "conversion", "format_spec"}
MESSAGES = ("dataclass", "logger.", "njit", "warnings.warn", "cache")


@dataclass(frozen=True)
class Mutant:
    """One change of a module.

    Parameters
    ----------
    module : str
        Its dotted name.
    node, number : int
        Which node, in the order of `nodes`, and which of its changes.
    line : int
        Where it stands.
    function : int
        The line that begins the innermost function around it, 0 outside of all.
    change : str
        What stood there, and what stands there now.
    """

    module: str
    node: int
    number: int
    line: int
    function: int
    change: str

    def code(self) -> CodeType:
        """The module with its change."""
        tree = parsed(self.module)
        node = next(
            node for number, (node, _) in enumerate(nodes(tree)) if number == self.node
        )
        field, place, _, new = list(changes(node))[self.number]
        _put(node, field, place, new)
        return compile(
            ast.fix_missing_locations(tree), str(source(self.module)), "exec"
        )


def source(module: str) -> Path:
    """The file of a module."""
    return ROOT / (module.replace(".", "/") + ".py")


def parsed(module: str) -> ast.Module:
    """A new tree of a module."""
    return ast.parse(source(module).read_text(encoding="utf-8"))


def mutants(module: str) -> Iterator[Mutant]:
    """All mutants of a module."""
    for node_number, (node, function) in enumerate(nodes(parsed(module))):
        for number, (field, place, part, new) in enumerate(changes(node)):
            of_node = isinstance(part, OPERATORS | ast.Constant)
            before = ast.unparse(node if of_node else part)
            _put(node, field, place, new)
            after = ast.unparse(node if of_node else new)
            _put(node, field, place, part)
            line = getattr(part, "lineno", getattr(node, "lineno", 0))
            yield Mutant(
                module, node_number, number, line, function, f"{before} -> {after}"
            )


def nodes(node: ast.AST, function: int = 0) -> Iterator[tuple[ast.AST, int]]:
    """All nodes that hold logic, each with the line of the function it runs in.

    Types, messages and the numbers that a study fixed (``NAME = 2000``) hold none.
    """
    if (
        isinstance(node, ast.Assign)
        and not function
        and ast.unparse(node.targets[0]).isupper()
    ):
        return
    yield node, function
    is_message = isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.keyword) and node.arg == "strict"
    )
    is_message |= isinstance(node, ast.Call) and ast.unparse(node.func).startswith(
        MESSAGES
    )
    for field, value in () if is_message else ast.iter_fields(node):
        inside = (
            node.lineno
            if isinstance(node, ast.FunctionDef) and field == "body"
            else function
        )
        for part in (
            () if field in NO_LOGIC else value if isinstance(value, list) else [value]
        ):
            if isinstance(part, ast.AST):
                yield from nodes(part, inside)


def changes(node: ast.AST) -> Iterator[tuple[str, int, Any, ast.AST]]:
    """All changes of a node: the field, the place in it, what stands there and what may stand there."""
    for field, value in (
        () if isinstance(node, ast.JoinedStr) else ast.iter_fields(node)
    ):
        for place, part in enumerate(value if isinstance(value, list) else [value]):
            for new in _others(field, part) if field not in NO_LOGIC else ():
                if not (
                    isinstance(node, ast.Subscript)
                    and ast.unparse(node.value).endswith("shape")
                    and _is_last(new)
                ):
                    yield field, place, part, new


def _others(field: str, part: Any) -> Iterator[ast.AST]:
    """What may stand in place of a part of a node."""
    yield from (kind() for kind in SWAPS.get(type(part), ()))
    if field in ("test", "ifs"):
        yield ast.UnaryOp(ast.Not(), part)
    if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not | ast.USub):
        yield part.operand
    if isinstance(part, ast.Constant) and isinstance(part.value, bool):
        yield ast.Constant(not part.value)
    elif isinstance(part, ast.Constant) and isinstance(part.value, int | float):
        yield from (ast.Constant(part.value + 1), ast.Constant(part.value - 1))
    is_call = isinstance(part, ast.Expr) and isinstance(part.value, ast.Call)
    if isinstance(part, DROPPED) or (
        is_call and not ast.unparse(part).startswith(MESSAGES)
    ):
        yield ast.Pass()
    if isinstance(part, ast.Assign) and isinstance(
        part.targets[0], ast.Subscript | ast.Attribute
    ):
        yield ast.Pass()


def _is_last(new: ast.AST) -> bool:
    """Whether an index is the last one, which is the first one too of an array with one axis."""
    return isinstance(new, ast.Constant) and new.value == -1


def _put(node: ast.AST, field: str, place: int, new: Any) -> None:
    value = getattr(node, field)
    if isinstance(value, list):
        value[place] = new
    else:
        setattr(node, field, new)


def code_that_tells(module: str) -> CodeType:
    """A module each of whose functions adds the line it begins on to ``sys.entered``, when it is called."""
    tree = parsed(module)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            tell = ast.parse(f"__import__('sys').entered.add({node.lineno})")
            node.body.insert(ast.get_docstring(node) is not None, tell.body[0])
    return compile(ast.fix_missing_locations(tree), str(source(module)), "exec")
