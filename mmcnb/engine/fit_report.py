"""Report of a fit: a dict with a short, readable repr."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

MOST_ENTRIES = 40  # maximum number of lines
MOST_CHARACTERS = 240  # maximum number of characters of an entry
MOST_ITEMS = 8  # maximum number of items of a list that are printed
DIGITS = 4  # significant digits of a printed number
# Format of the items of each list of dicts, by the name of the entry of the report.
ITEMS = {
    "candidates": "{candidate} (J {J:.2f})",
    "layers": "{n_clusters} clusters (J {J:.2f})",
    "changes": "cluster {number} {change}",
    "gaps": "{column} {share:.1%}",
    "dropped": "{share:.1%} of the rows: {reason}",
}


class Trust(dict[str, Any]):
    """Level of trust in the clusters and its reason: a dict that prints as a sentence.

    Examples
    --------
    >>> from mmcnb.engine.fit_report import Trust
    >>> Trust(level="high", reason="the agreement with other candidates is 0.89.")
    high: the agreement with other candidates is 0.89.
    """

    def __repr__(self) -> str:
        """Return the level of trust and its reason as one sentence."""
        return f"{self.get('level')}: {self.get('reason')}"


class Report(dict[str, Any]):
    """Report of a fit: a dict that prints one short line per entry.

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
        """Return one line per entry, with at most 40 lines."""
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
    """Return the main statements of a report as texts, by their titles.

    A text is empty if the report has no entry for its title.

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
    """Return the name of each column that is left out, with the reason in brackets."""
    return [
        f"{column['name']} ({column['why']})"
        for column in columns
        if column["treatment"] == "left out"
    ]


def shortened(text: str, most: int = MOST_CHARACTERS) -> str:
    """Return a text as one line, truncated to ``most`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 3]}..."


def _text_of(name: str, value: Any) -> str:
    """Return the text with which the report prints the value of an entry."""
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
    """Return a text with the number of columns by treatment.

    The text also lists the columns that are left out.
    """
    counts = Counter(column["treatment"] for column in columns)
    parts = [f"{count} {treatment}" for treatment, count in counts.items()]
    text = f"{len(columns)}: {', '.join(parts)}"
    names = _left_out(columns)
    return f"{text}; left out are {_listed(names)}" if names else text


def _words(value: Any) -> str:
    """Return a value as text.

    Floats have at most `DIGITS` significant digits, and lists at most `MOST_ITEMS`
    items.
    """
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
    """Join the first `MOST_ITEMS` texts with commas, and append how many more exist."""
    if len(texts) <= MOST_ITEMS:
        return ", ".join(texts) or "none"
    return f"{', '.join(texts[:MOST_ITEMS])} and {len(texts) - MOST_ITEMS:,} more"
