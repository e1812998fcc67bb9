"""The report of a fit: a dict that prints as a short text."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

MOST_ENTRIES = 40  # maximum number of lines
MOST_CHARACTERS = 240  # maximum number of characters of an entry
MOST_ITEMS = 8  # maximum number of items of a list
DIGITS = 4  # significant digits of a number
# How an item of a list is printed: its name and one number.
ITEMS = {
    "candidates": "{candidate} (J {J:.2f})",
    "layers": "{n_clusters} clusters (J {J:.2f})",
    "changes": "cluster {number} {change}",
    "gaps": "{column} {share:.1%}",
    "dropped": "{share:.1%} of the rows: {reason}",
}


class Trust(dict[str, Any]):
    """How far the clusters can be trusted: a dict that prints as a sentence.

    Examples
    --------
    >>> from mmcnb.engine.fit_report import Trust
    >>> Trust(level="high", reason="the agreement with other candidates is 0.89.")
    high: the agreement with other candidates is 0.89.
    """

    def __repr__(self) -> str:
        """Return the level and the reason."""
        return f"{self.get('level')}: {self.get('reason')}"


class Report(dict[str, Any]):
    """The report of a fit: a dict that prints one short line per entry.

    Examples
    --------
    >>> from mmcnb.engine.fit_report import Report
    >>> Report(sizes=[3, 4], w_norm=1.23456, warnings=[])
    sizes     3, 4
    w_norm    1.235
    warnings  none
    """

    def __init__(self, *entries: Any, **named: Any) -> None:
        super().__init__(*entries, **named)
        if isinstance(self.get("trust"), dict):
            self["trust"] = Trust(self["trust"])

    def __repr__(self) -> str:
        """Return one line per entry, and at most 40 lines."""
        width = max(map(len, self), default=0)
        lines = [
            f"{name:<{width}}  {shortened(_text_of(name, value))}"
            for name, value in self.items()
        ]
        if len(lines) > MOST_ENTRIES:
            n_more = len(lines) - MOST_ENTRIES + 1
            lines[MOST_ENTRIES - 1 :] = [f"... and {n_more} more entries"]
        return "\n".join(lines)


def verdict(report: Mapping[str, Any]) -> dict[str, str]:
    """Return the verdict on the clusters: a text, which may be empty, for each title.

    Examples
    --------
    >>> from mmcnb.engine.fit_report import verdict
    >>> report = {"number": {"reason": "3 clusters, as asked."}, "warnings": []}
    >>> verdict(report)["Number of clusters"]
    '3 clusters, as asked.'
    """
    trust = report.get("trust")
    number = report.get("number")
    return {
        "Trust": repr(Trust(trust)) if trust else "",
        "Number of clusters": str(number.get("reason") or "") if number else "",
        "Columns": report.get("scaling") or "",
        "Columns left out": ", ".join(_left_out(report.get("columns") or ())),
        "Warnings": " ".join(report.get("warnings") or ()),
    }


def _left_out(columns: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the columns that are left out, with the reasons."""
    return [
        f"{column['name']} ({column['why']})"
        for column in columns
        if column["treatment"] == "left out"
    ]


def shortened(text: str, most: int = MOST_CHARACTERS) -> str:
    """Return a text on one line, cut if it is long."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 3]}..."


def _text_of(name: str, value: Any) -> str:
    """Return an entry as text."""
    if name == "columns" and isinstance(value, list):
        return _columns(value)
    if name == "number" and isinstance(value, dict) and value.get("reason"):
        return str(value["reason"])
    if name == "warnings" and value:
        return " ".join(value)
    if name == "left_out" and not value:
        return "no candidate"
    if name in ITEMS and isinstance(value, list):
        value = [ITEMS[name].format(**row) for row in value]
    return _words(value)


def _columns(columns: list[dict[str, Any]]) -> str:
    """Count the columns by treatment, and list the columns that are left out."""
    counts = Counter(column["treatment"] for column in columns)
    parts = [f"{count} {treatment}" for treatment, count in counts.items()]
    text = f"{len(columns)}: {', '.join(parts)}"
    names = _left_out(columns)
    return f"{text}; left out are {_listed(names)}" if names else text


def _words(value: Any) -> str:
    """Return a value as text with few digits and few items."""
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, Trust):
        return repr(value)
    if isinstance(value, float):
        return f"{value:.{DIGITS}g}" if not value.is_integer() else f"{value:,.12g}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, dict):
        return _listed([f"{name} {_words(part)}" for name, part in value.items()])
    if isinstance(value, list | tuple):
        return _listed([_words(part) for part in value])
    return str(value)


def _listed(texts: list[str]) -> str:
    """Return the first items of a list, and the number of further items."""
    if len(texts) <= MOST_ITEMS:
        return ", ".join(texts) or "none"
    return f"{', '.join(texts[:MOST_ITEMS])} and {len(texts) - MOST_ITEMS:,} more"
