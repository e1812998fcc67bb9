"""Take the remedies out of messages of calls in Python, and follow them.

Each function takes a call of rows X and its message, and gives the attempts that follow
the message: each an expression for other rows X, and a call.
"""

import ast
import re

_VALUE = r"(?:True|\{[^}]*\}|\[[^\]]*\]|\{[^}]*\}|'[^']*'|\"[^\"]*\"|-?\d[\w.]*)"
ARGUMENT = re.compile(rf"\b([a-z_]+)=({_VALUE})")
# What begins a piece of Python in a message.
EXPRESSION = re.compile(r"(?<![\w.])(?:X[.\[]|np\.|numpy\.|scipy\.|sklearn\.|\()")
READER = "mmcnb.read_table"
OF_ROWS = ("columns", "keep", "element")  # arguments of fit; others are of estimators


def arguments(call, message):
    """Give the arguments of the message, each group of them by itself.

    Arguments of `mmcnb.read_table` go to it, and the call takes what it reads.
    """
    is_of_reader = READER in message
    if f"in Python, {READER}" in message:
        message = message.partition("in Python, ")[2]
    attempts = []
    for group in _groups(message):
        if not is_of_reader or READER in call:
            attempts.append(("X", _with_arguments(call, group)))
            continue
        reader = _with_arguments(f"{READER}(X)", group)
        attempts.append((reader, without_columns(call)))
    return attempts


def _groups(message):
    """Groups of arguments: those with "with" between them are given at once."""
    message = re.sub(r" \(--[^()]*\)", "", message)
    remedy = message
    for mark in ("; give ", "; pass ", ": "):
        after = message.partition(mark)[2]
        if ARGUMENT.search(after):
            remedy = after
            break
    end = 0
    groups = []
    for match in ARGUMENT.finditer(remedy):
        argument = {match[1]: ast.literal_eval(match[2])}
        if groups and remedy[end : match.start()] == " with ":
            groups[-1] |= argument
        else:
            groups.append(argument)
        end = match.end()
    return groups


def _with_arguments(call, given):
    """A call with other arguments, in the call that has or takes them."""
    tree = ast.parse(call, mode="eval")
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    for name, value in given.items():
        owners = [
            node for node in calls if name in [word.arg for word in node.keywords]
        ]
        ours = [node for node in calls if ast.unparse(node.func).startswith("mmcnb.")]
        chain = ours if name in OF_ROWS else ours[::-1]
        (owner, *_) = owners or chain
        owner.keywords = [word for word in owner.keywords if word.arg != name]
        owner.keywords.append(ast.keyword(name, ast.Constant(value)))
    return ast.unparse(tree)


def without_columns(call):
    """A call without columns, of rows whose columns are chosen."""
    return _without(call, "columns")


def _without(call, name):
    tree = ast.parse(call, mode="eval")
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            node.keywords = [word for word in node.keywords if word.arg != name]
    return ast.unparse(tree)


def without_argument(name):
    """Leave an argument out that the message names."""

    def follow(call, message):
        assert re.search(rf"\b{name}\b", message)
        assert re.search(rf"leave (it|{name}) out|drop one", message)
        return [("X", _without(call, name))]

    return follow


def expressions(call, message):
    """Give what the message makes of X in place of it."""
    found = []
    end = 0
    for match in EXPRESSION.finditer(message):
        if match.start() < end:
            continue
        text = _python_at_start(message[match.start() :])
        if text is not None and "X" in text:
            found.append(text)
            end = match.start() + len(text)
    return [(text, call) for text in found]


def _python_at_start(text):
    """The longest piece at the start of a text that is a call or a part of rows."""
    for end in range(len(text), 0, -1):
        try:
            tree = ast.parse(text[:end], mode="eval").body
        except SyntaxError:
            continue
        if isinstance(tree, ast.Call | ast.Subscript | ast.BinOp):
            return text[:end].rstrip()
    return None


def choices(call, message):
    """Give each of the values that the message lists."""
    name = re.search(r"(\w+)=", message)[1]
    listed = re.search(r"(?:give|pass|choose one of) (.*?)(?:;|\.$)", message)[1]
    attempts = []
    for value in re.findall(r"'[^']*'|None", listed):
        given = {name: ast.literal_eval(value)}
        attempts.append(("X", _with_arguments(call, given)))
    return attempts


def shown_values(call, message):
    """Give the first value that the message shows."""
    name = re.search(r"(\w+)=", message)[1]
    value = re.search(r"(?:give|pass) (\(.*?\)|'[^']*'|\d+)", message)[1]
    return [("X", _with_arguments(call, {name: ast.literal_eval(value)}))]


def least_memory(call, message):
    """Give the least memory that the message names."""
    least = re.search(r"the least that works is ([\d.]+ \w+)", message)[1]
    return [("X", _with_arguments(call, {"memory_limit": least}))]


def by_hand(reason, X="X", call=None):
    """Give other rows, or another call, as the message says, which has the reason."""

    def follow(first_call, message):
        assert reason in message, message
        return [(X, call or first_call)]

    return follow
