"""Small rules for texts that people read: no ANSI codes, counted nouns, shortened lines, lengths of time. Pure."""

from __future__ import annotations

import re
from datetime import timedelta

_CODE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


def without_ansi(text: str) -> str:
    return _CODE.sub("", text)


StyledText = tuple[str, str]
"""A text, and the names of its styles with spaces between them, such as `bold red`."""
_COLOURS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_STYLES = {1: "bold", 2: "dim", 3: "italic", 4: "underline"}
_ENDS = {22: ("bold", "dim"), 23: ("italic",), 24: ("underline",)}
_FOREGROUND, _BACKGROUND, _BRIGHT, _DEFAULT = 38, 48, 90, 39
_CODES_LIMIT = 32  # numbers in one code, and codes in one line that say how it looks
_SPLIT = re.compile(rf"({_CODE.pattern})")


def styled_texts(line: str) -> list[StyledText]:
    """The line in parts that look alike: colours of ANSI codes by their names; all other codes are left out.

    Backgrounds are left out, too: they were chosen for a terminal of another colour.
    """
    parts, colour, styles = list[StyledText](), "", list[str]()
    for place, part in enumerate(_SPLIT.split(line)):
        is_code = place % 2 == 1  # what is split at stands between what it splits
        if is_code and part.endswith("m"):
            colour, styles = _after_code(part[2:-1], colour, styles)
        elif part and not is_code:
            parts.append((part, " ".join([*styles, *([colour] if colour else [])])))
    return parts


def _after_code(code: str, colour: str, styles: list[str]) -> tuple[str, list[str]]:
    numbers = [int(text) if text.isdecimal() and len(text) < 4 else 0 for text in code.split(";")[:_CODES_LIMIT]]
    while numbers:
        number = numbers.pop(0)
        if number == 0:
            colour, styles = "", []
        elif number in _STYLES:
            styles = [*[one for one in styles if one != _STYLES[number]], _STYLES[number]]
        elif number in _ENDS:
            styles = [one for one in styles if one not in _ENDS[number]]
        elif number in (_FOREGROUND, _BACKGROUND):
            chosen, numbers = _chosen_colour(numbers)
            colour = chosen if number == _FOREGROUND else colour
        elif number == _DEFAULT:
            colour = ""
        elif number // 10 * 10 in (30, _BRIGHT) and number % 10 < len(_COLOURS):
            colour = _COLOURS[number % 10]
    return colour, styles


def _chosen_colour(numbers: list[int]) -> tuple[str, list[int]]:
    """A colour out of 256 or of all, as the nearest of eight; and the numbers behind it."""
    if numbers[:1] == [5] and len(numbers) > 1:
        return _of_256(numbers[1]), numbers[2:]
    if numbers[:1] == [2] and len(numbers) > 3:
        return _nearest(*numbers[1:4]), numbers[4:]
    return "", numbers[1:]


def _of_256(number: int) -> str:
    if number < 16:
        return _COLOURS[number % 8]
    if number >= 232:
        return ""  # a grey
    number -= 16
    return _nearest(number // 36 * 51, number // 6 % 6 * 51, number % 6 * 51)


def _nearest(red: int, green: int, blue: int) -> str:
    most = max(red, green, blue)
    bits = [value * 2 > most for value in (red, green, blue)]
    place = bits[0] + 2 * bits[1] + 4 * bits[2]
    return "" if place in (0, 7) else _COLOURS[place]


def counted(number: int, noun: str) -> str:
    """`1 node`, `2,000 nodes`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


LINE_CHARS = 240
_MORE = " ..."


def shortened(text: str) -> str:
    """A line, or its beginning up to a word, with a sign that there was more."""
    return cut_at_word(text, LINE_CHARS)


def cut_at_word(text: str, chars: int) -> str:
    """The text, or its beginning up to a word, with a sign that there was more."""
    if len(text) <= chars:
        return text
    kept = text[: chars - len(_MORE)]
    return (kept.rpartition(" ")[0] or kept) + _MORE


_CUT_LINE = "...\n"


def end_of(text: str, chars: int) -> str:
    """The last whole lines within so many characters, below a sign that there was more; of a longer line, its end."""
    if len(text) <= chars:
        return text
    kept = text[-chars:]
    return _CUT_LINE + (kept if text[-chars - 1] == "\n" else kept.partition("\n")[2] or kept)


_UNBROKEN = "\u00a0"  # a number stays beside its unit


def length_in_words(length: timedelta) -> str:
    """How long something took, in the two largest units."""
    seconds = max(0.0, length.total_seconds())
    if seconds < 10:
        return f"{seconds:.1f}{_UNBROKEN}s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    units = ((days, "d"), (hours, "h"), (minutes, "min"), (rest, "s"))
    first = next((place for place, (number, _) in enumerate(units) if number), len(units) - 1)
    return _UNBROKEN.join(f"{number}{_UNBROKEN}{unit}" for number, unit in units[first : first + 2] if number)


_UNITS = ((timedelta(days=1), "d"), (timedelta(hours=1), "h"), (timedelta(minutes=1), "min"))


def ago_in_words(age: timedelta) -> str:
    """How long ago something was, in its largest unit: `8 min ago`. What a clock has in the future is now."""
    for unit, name in _UNITS:
        if age >= unit:
            return f"{age // unit}{_UNBROKEN}{name} ago"
    return "just now"


def size_text(size: float) -> str:
    """Bytes as people read them, in powers of a thousand."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} PB"
