"""Recognise the texts of known answer scales in English and German.

A scale lists the texts of each level, separated by semicolons, from the lowest level to
the highest. Texts are compared in lower case, without punctuation, and without a number
at their beginning or end.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple

MOST_TEXTS = 100  # maximum number of distinct texts in a column with a scale
LEAST_LEVELS = 3  # minimum number of levels, because two texts need no order
NUMBER_BEFORE = re.compile(r"^\W*\d+\W+")
NUMBER_BEHIND = re.compile(r"\W+\d+\W*$")
NUMBERED = "numbers with words"
NUMBERED_TEXT = re.compile(r"^\W*(\d{1,2})(?:\W.*)?$")
UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue"})

SCALES: dict[str, tuple[str, ...]] = {
    "agreement": (
        "strongly disagree; completely disagree; totally disagree; fully disagree; "
        "disagree strongly; disagree completely; very strongly disagree; "
        "stimme überhaupt nicht zu; stimme gar nicht zu; trifft überhaupt nicht zu; "
        "trifft gar nicht zu; lehne stark ab; lehne völlig ab",
        "disagree; mostly disagree; stimme nicht zu; trifft nicht zu; lehne ab",
        "somewhat disagree; slightly disagree; disagree somewhat; disagree slightly; "
        "tend to disagree; rather disagree; stimme eher nicht zu; "
        "trifft eher nicht zu; trifft weniger zu; stimme weniger zu; lehne eher ab",
        "neutral; neither; neither agree nor disagree; neither disagree nor agree; "
        "undecided; not sure; unsure; teils teils; teilweise; weder noch; "
        "unentschieden; stimme teilweise zu; trifft teilweise zu; trifft teils zu",
        "somewhat agree; slightly agree; agree somewhat; agree slightly; "
        "tend to agree; rather agree; stimme eher zu; trifft eher zu",
        "agree; mostly agree; stimme zu; trifft zu",
        "strongly agree; completely agree; totally agree; fully agree; agree strongly; "
        "agree completely; very strongly agree; stimme voll zu; "
        "stimme voll und ganz zu; stimme völlig zu; stimme vollkommen zu; "
        "stimme sehr zu; stimme stark zu; trifft voll zu; trifft voll und ganz zu; "
        "trifft völlig zu; trifft genau zu; trifft sehr zu",
    ),
    "frequency": (
        "never; nie; niemals",
        "almost never; hardly ever; very rarely; very seldom; fast nie; sehr selten",
        "rarely; seldom; infrequently; selten",
        "occasionally; once in a while; now and then; gelegentlich; ab und zu; "
        "hin und wieder",
        "sometimes; about half the time; half of the time; manchmal",
        "often; frequently; regularly; oft; häufig; regelmäßig",
        "usually; very often; very frequently; mostly; most of the time; sehr oft; "
        "sehr häufig; meistens; meist",
        "almost always; nearly always; fast immer",
        "always; all of the time; all the time; immer",
    ),
    "quality": (
        "extremely poor; terrible; awful; miserabel; ungenügend",
        "very poor; very bad; sehr schlecht; mangelhaft",
        "poor; bad; schlecht; ausreichend",
        "below average; unterdurchschnittlich",
        "fair; average; acceptable; ok; okay; adequate; satisfactory; neutral; mäßig; "
        "mittel; mittelmäßig; durchschnittlich; befriedigend",
        "above average; überdurchschnittlich",
        "good; gut",
        "very good; sehr gut",
        "excellent; outstanding; exceptional; ausgezeichnet; hervorragend; exzellent",
    ),
    "satisfaction": (
        "extremely dissatisfied; completely dissatisfied; äußerst unzufrieden; "
        "völlig unzufrieden",
        "very dissatisfied; very unsatisfied; sehr unzufrieden",
        "dissatisfied; unsatisfied; unzufrieden",
        "somewhat dissatisfied; slightly dissatisfied; rather dissatisfied; "
        "eher unzufrieden",
        "neutral; neither; neither satisfied nor dissatisfied; teils teils; weder noch",
        "somewhat satisfied; slightly satisfied; rather satisfied; eher zufrieden",
        "satisfied; zufrieden",
        "very satisfied; sehr zufrieden",
        "extremely satisfied; completely satisfied; äußerst zufrieden; "
        "völlig zufrieden",
    ),
    "severity": (
        "none; no; absent; keine; keiner; kein; nicht vorhanden",
        "minimal; trace; very mild; sehr leicht",
        "mild; slight; minor; leicht; gering",
        "moderate; medium; mittel; mäßig; mittelschwer; moderat",
        "severe; serious; major; strong; schwer; stark",
        "very severe; critical; extreme; sehr schwer; sehr stark; kritisch; extrem",
    ),
    "level": (
        "none; keine; keiner; kein",
        "extremely low; äußerst niedrig",
        "very low; vl; lowest; sehr niedrig; sehr gering; sehr tief",
        "low; l; niedrig; gering; tief",
        "below average; rather low; medium low; low medium; eher niedrig; eher gering; "
        "unterdurchschnittlich",
        "medium; m; mid; middle; moderate; average; normal; intermediate; mittel; "
        "mittelmäßig; mäßig; durchschnittlich",
        "above average; rather high; medium high; eher hoch; überdurchschnittlich",
        "high; h; hoch",
        "very high; vh; highest; sehr hoch",
        "extremely high; critical; äußerst hoch; kritisch",
    ),
    "size": (
        "xxxs; 3xs",
        "xxs; 2xs",
        "xs; extra small; x small; tiny; very small; winzig; sehr klein",
        "s; small; klein",
        "m; medium; med; mid; average; mittel; mittelgroß",
        "l; large; big; groß",
        "xl; extra large; x large; very large; huge; very big; sehr groß; riesig",
        "xxl; 2xl; xx large; extra extra large",
        "xxxl; 3xl; xxx large",
        "xxxxl; 4xl",
        "xxxxxl; 5xl",
    ),
    "degree": (
        "not at all; gar nicht; überhaupt nicht",
        "hardly; hardly at all; very little; kaum; sehr wenig",
        "slightly; a little; a little bit; a bit; little; wenig; ein wenig; "
        "ein bisschen; etwas",
        "somewhat; einigermaßen; teilweise; teils teils",
        "moderately; mäßig; mittelmäßig; mittel",
        "quite; quite a bit; quite a lot; fairly; considerably; ziemlich; überwiegend",
        "very; very much; a lot; a great deal; highly; sehr; stark",
        "extremely; completely; totally; äußerst; extrem; völlig; außerordentlich; "
        "voll und ganz",
    ),
    "importance": (
        "not at all important; not important at all; unimportant; völlig unwichtig; "
        "überhaupt nicht wichtig; gar nicht wichtig",
        "not important; not very important; of little importance; unwichtig; "
        "nicht wichtig",
        "slightly important; less important; weniger wichtig; eher unwichtig",
        "neutral; neither; teils teils; weder noch",
        "somewhat important; moderately important; fairly important; eher wichtig; "
        "mäßig wichtig",
        "important; quite important; wichtig",
        "very important; sehr wichtig",
        "extremely important; essential; critical; äußerst wichtig",
    ),
    "likelihood": (
        "extremely unlikely; definitely not; äußerst unwahrscheinlich; "
        "auf keinen fall; sicher nicht",
        "very unlikely; sehr unwahrscheinlich",
        "unlikely; probably not; unwahrscheinlich; wahrscheinlich nicht",
        "somewhat unlikely; rather unlikely; slightly unlikely; eher unwahrscheinlich; "
        "eher nicht",
        "neutral; neither; neither likely nor unlikely; unsure; not sure; undecided; "
        "maybe; possibly; vielleicht; weder noch; teils teils",
        "somewhat likely; rather likely; slightly likely; eher wahrscheinlich",
        "likely; probably; wahrscheinlich",
        "very likely; sehr wahrscheinlich",
        "extremely likely; definitely; äußerst wahrscheinlich; sicher; auf jeden fall",
    ),
    "difficulty": (
        "very easy; sehr leicht; sehr einfach",
        "easy; leicht; einfach",
        "somewhat easy; rather easy; eher leicht",
        "medium; moderate; neutral; average; normal; mittel; mittelschwer",
        "somewhat difficult; rather difficult; eher schwer",
        "difficult; hard; schwer; schwierig",
        "very difficult; very hard; sehr schwer; sehr schwierig",
    ),
    "intensity": (
        "none; kein; keine",
        "very light; very weak; sehr schwach",
        "light; weak; schwach",
        "medium; moderate; mittel; mäßig",
        "heavy; strong; stark",
        "very heavy; very strong; sehr stark",
    ),
    "skill": (
        "none; no experience; no knowledge; keine; keine kenntnisse",
        "beginner; novice; basic; elementary; anfänger; anfängerin; einsteiger; "
        "grundkenntnisse",
        "intermediate; competent; mittel; mittelstufe; fortgeschrittener anfänger",
        "advanced; proficient; fortgeschritten; fortgeschrittener; fortgeschrittene; "
        "erfahren",
        "expert; master; experte; expertin; profi",
    ),
}

NO_ANSWERS = (
    "don't know; do not know; i don't know; i do not know; dk; idk; no answer; "
    "no response; no reply; not applicable; does not apply; na; n a; not available; "
    "prefer not to say; prefer not to answer; i prefer not to say; rather not say; "
    "refused; declined; declined to answer; refuse to answer; unknown; not stated; "
    "not specified; not answered; none; no opinion; can't say; cannot say; "
    "skipped; missing; "
    "keine angabe; keine angaben; k a; weiß nicht; weiß ich nicht; ich weiß nicht; "
    "kann ich nicht sagen; kann ich nicht beurteilen; nicht zutreffend; entfällt; "
    "unbekannt; keine antwort; keine meinung; keine auskunft; möchte ich nicht sagen; "
    "nicht beantwortet"
)


def key_of(text: str) -> str:
    """Return the normalised form of a text, for comparisons with scales.

    Examples
    --------
    >>> from mmcnb.tables.orders import key_of
    >>> key_of("1 - Strongly_Disagree"), key_of("5 (excellent)"), key_of("Weiß nicht")
    ('strongly disagree', 'excellent', 'weiss nicht')
    """
    folded = unicodedata.normalize("NFC", text).casefold().replace("_", " ")
    folded = re.sub("['`\u2019\u00b4]", "", folded.translate(UMLAUTS))
    without = NUMBER_BEHIND.sub("", NUMBER_BEFORE.sub("", folded))
    return " ".join(re.findall(r"\w+", without))


def _keys(texts: str) -> tuple[str, ...]:
    return tuple(map(key_of, texts.split("; ")))


@cache
def levels_of(scale: str) -> tuple[tuple[str, ...], ...]:
    """Return the keys (normalised texts) of each level of a scale."""
    return tuple(map(_keys, SCALES[scale]))


@cache
def _places(scale: str) -> dict[str, int]:
    """Return the level index of each key (normalised text) of a scale."""
    places: dict[str, int] = {}
    for number, keys in enumerate(levels_of(scale)):
        places |= dict.fromkeys(keys, number)
    return places


class Answers(NamedTuple):
    """The answers in a column that uses a known scale.

    Attributes
    ----------
    scale : str
        Name of the scale, or `NUMBERED` if the texts begin with numbers and are not all
        on a scale, as in "1 - never", "2", "3 - always".
    shown : dict of int to str
        The most frequent text of each level that occurs, by level index or, if the
        scale is `NUMBERED`, by the number in the text.
    no_answers : dict of str to int
        Number of cells with each text that is not an answer, such as "don't know".
    """

    scale: str
    shown: dict[int, str]
    no_answers: dict[str, int]


def answers_of(counts: Mapping[str, int]) -> Answers | None:
    """Return the answers of a column if all its texts belong to one scale, or None.

    Parameters
    ----------
    counts : mapping of str to int
        Number of cells with each text.

    Examples
    --------
    >>> from mmcnb.tables.orders import answers_of
    >>> answers_of({"Never": 3, "often": 2, "ALWAYS": 5, "don't know": 1})
    Answers(scale='frequency', shown={0: 'Never', 5: 'often', 8: 'ALWAYS'},
    no_answers={"don't know": 1})
    """
    if not counts or len(counts) > MOST_TEXTS:
        return None
    no_answer = _keys(NO_ANSWERS)
    frequent_first = sorted(counts, key=lambda text: (-counts[text], text))
    keys = {text: key_of(text) for text in frequent_first}
    for scale in SCALES:
        places = _places(scale)
        rest = [text for text in keys if keys[text] not in places]
        if len(rest) == len(keys) or any(keys[text] not in no_answer for text in rest):
            continue
        shown: dict[int, str] = {}
        for text in keys:
            if text not in rest:
                shown.setdefault(places[keys[text]], text)
        if len(shown) > 1:
            by_level = {level: shown[level] for level in sorted(shown)}
            return Answers(scale, by_level, {text: counts[text] for text in rest})
    return _numbered(counts)


def _numbered(counts: Mapping[str, int]) -> Answers | None:
    """Return the `Answers` if texts are numbered, as in 1 - poor; otherwise None.

    All texts must begin with a number, and at least two must also have words. The words
    must belong to one scale, and their order must match that of the numbers or its
    reverse.
    """
    no_answer = _keys(NO_ANSWERS)
    texts = [text for text in counts if key_of(text) not in no_answer]
    matches = [NUMBERED_TEXT.match(text) for text in texts]
    by_number: dict[int, str] = {}
    for text, match in zip(texts, matches, strict=True):
        if match is None:
            return None
        by_number[int(match[1])] = text
    keys = [key_of(by_number[number]) for number in sorted(by_number)]
    words = [key for key in keys if not key.isdecimal()]
    if len(words) < 2 or len(by_number) < max(len(texts), LEAST_LEVELS):
        return None
    for scale in SCALES:
        places = [_places(scale).get(word, -1) for word in words]
        if min(places) >= 0 and places in (sorted(places), sorted(places)[::-1]):
            shown = {number: by_number[number] for number in sorted(by_number)}
            rest = counts.keys() - set(texts)
            return Answers(NUMBERED, shown, {text: counts[text] for text in rest})
    return None


def levels_with_texts(
    scale: str, shown: Mapping[int, str]
) -> tuple[tuple[str, ...], ...]:
    """Return those levels of a scale that occur in a column.

    Each level is a tuple of the text to show, followed by all its keys.

    Parameters
    ----------
    scale : str
    shown : mapping of int to str
        The text to show for each level that occurs, as in `Answers.shown`.
    """
    if scale == NUMBERED:
        return tuple((shown[number], str(number)) for number in sorted(shown))
    keys = levels_of(scale)
    return tuple((shown[level], *keys[level]) for level in sorted(shown))


def places_of_texts(
    levels: Iterable[tuple[str, ...]], texts: Iterable[str], by_keys: bool
) -> list[int | None]:
    """Return the level index of each text, or None for texts without a level.

    Parameters
    ----------
    levels : iterable of tuple of str
        Texts of each level.
    texts : iterable of str
    by_keys : bool
        Whether texts are compared in normalised form (`key_of`) instead of exactly.
    """
    places: dict[str, int] = {}
    for number, of_level in enumerate(levels):
        for text in of_level:
            places.setdefault(key_of(text) if by_keys else text, number)
    return [places.get(key_of(text) if by_keys else text) for text in texts]
