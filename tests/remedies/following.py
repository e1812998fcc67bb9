"""Take the remedies out of messages, and follow them.

Each function takes the words of a command and its message, and gives the attempts that
follow the message: lists of commands, of which all must succeed and the last must no
longer have the message.
"""

import re
import shlex
from pathlib import Path

FLAGS = ("--overwrite", "--layers", "--zero-based")  # options without a value
# An option of a sentence with its value, which ends before a mark of the sentence.
OPTION = re.compile(
    r"(?<![\w-])(--[a-z]+(?:-[a-z]+)*)(?:([ =])('[^']*'|[^\s;`]+?)(?=(?:\)[,;.]*|[,;.`]?)(?:\s|$)))?"
)
WORDS_OF_SENTENCES = ("or", "and", "if", "with", "by", "are", "is", "has", "writes")


def options_of(message):
    """Groups of options with their values: a group is given at once, other groups instead."""
    groups = []
    end = 0
    for match in OPTION.finditer(message):
        option, mark, value = match.groups()
        if option in FLAGS:
            words = [option]
        elif value is None or value in WORDS_OF_SENTENCES:
            continue
        elif mark == "=":
            words = shlex.split(f"{option}={value}")
        else:
            words = [option, *shlex.split(value)]
        if groups and message[end : match.start()] in (" ", " with "):
            groups[-1] += words
        else:
            groups.append(words)
        end = match.end()
    return groups


def without(words, option):
    """The words of a command without an option and its value."""
    words = list(words)
    if option in words:
        place = words.index(option)
        del words[place : place + (1 if option in FLAGS else 2)]
    return words


def options(words, message):
    """Give the options of the message, one group after the other."""
    attempts = []
    for group in options_of(message):
        if group[0] not in FLAGS or group[0] not in words:
            attempts.append([[*words, *group]])
    return attempts


def only(option):
    """Give one option of the message, which has others for other ends."""

    def follow(words, message):
        groups = [
            group
            for group in options_of(message)
            if group[0].partition("=")[0] == option
        ]
        return [[[*words, *group]] for group in groups]

    return follow


def instead_of(option):
    """Give the options of the message instead of one of the command."""

    def follow(words, message):
        return [[[*without(words, option), *group]] for group in options_of(message)]

    return follow


def leave_out(words, message):
    """Leave out the options that the message names, each by itself."""
    before, leave, after = re.split(r"(leave \w+ out|leave out|drop one)", message)
    message = after if leave == "leave out" else before
    named = [match[1] for match in OPTION.finditer(message)]
    for name in re.findall(r"\b[a-z]+(?:_[a-z]+)*\b", message):
        named.append("--" + name.replace("_", "-"))
    attempts = []
    for option in dict.fromkeys(named):
        if option in words:
            attempts.append([without(words, option)])
    return attempts


def least_memory(words, message):
    """Give the least memory that the message names."""
    least = re.search(r"the least that works is ([\d.]+ \w+)", message)[1]
    return [[[*without(words, "--memory-limit"), "--memory-limit", least]]]


def meant(words, message):
    """Give the name that the message takes for the meant one."""
    wrong = re.search(r"no column is named '([^']*)'", message)[1]
    right = re.search(r"perhaps '([^']*)' is meant", message)[1]
    return [[[right if word == wrong else word for word in words]]]


def choices(words, message):
    """Give each of the values that the message lists in place of the wrong one."""
    wrong = re.search(r"invalid choice: '([^']*)'|(?:=|column )'?([^'\s]*)'?", message)
    wrong = wrong[1] or wrong[2]
    listed = re.search(
        r"(?:choose from|choose one of|name one of|give|pass) (.*?)[.)]?(?:;|$)",
        message,
    )
    values = []
    for value in re.split(r", or |, | or ", listed[1]):
        values.append(value.strip("'\""))
    values = [value for value in values if value and " " not in value]
    attempts = []
    for value in values:
        attempts.append([[_replaced(word, wrong, value) for word in words]])
    return attempts


def _replaced(word, wrong, value):
    name, mark, given = word.rpartition("=")  # of --set name=value
    return f"{name}{mark}{value}" if given == wrong else word


def given_value(words, message):
    """Give the value that the message shows for the option."""
    name = re.match(r"(?:\S+: )?(\w+)=", message)[1]
    value = re.search(
        r"(?:give|pass|like|of at least|such as) \(?['\"]?([-\w:/.]+(?:, \d+)?)",
        message,
    )[1]
    option = "--" + name.replace("_", "-")
    value = value.replace(", ", ",")
    return [[[*without(words, option), option, value]]]


def commands(words, message):
    """Run the commands in backquotes, then the command on what they write.

    DATA is that of the command.
    """
    steps = []
    for command in re.findall(r"`mmcnb ([^`]*)`", message):
        steps.append(shlex.split(command))
    assert steps, message
    steps = [[words[2] if word == "DATA" else word for word in step] for step in steps]
    again = list(words)
    for step in steps:
        if step[0] == "convert":
            source = Path(step[1]).resolve()
            again = [
                step[2] if Path(word).resolve() == source else word for word in again
            ]
    return [[*steps, again]]


def refit(words, message):
    """Run the command in backquotes with the store, instead of the command."""
    (step,) = commands(words, message)[0][:-1]
    return [[step]]


def reason(words_of_reason):
    """Nothing: the message names the reason why no option helps."""

    def follow(words, message):
        assert words_of_reason in message
        return []

    return follow


def by_hand(reason, *changed):
    """Change the words of a command as the message says, which has the reason."""

    def follow(words, message):
        assert reason in message, message
        pairs = dict(zip(changed[::2], changed[1::2], strict=True))
        return [[[pairs.get(word, word) for word in words]]]

    return follow
