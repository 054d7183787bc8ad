"""Secrets in free text: what looks like one is replaced, by the patterns that docs/secrets.md lists. Pure.

Each pattern begins with a word, and is tried only where that word stands: finding words is a hundred times quicker than
matching, and most texts hold none. Every repetition in a pattern is of one class of characters, and what matched is not
looked at again, so the time grows with the length of the text alone.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

MASK = "<redacted>"

_NAMES = ("token", "secret", "password", "passwd", "passphrase", "signature", "credential", "credentials")
"""What the name of a value that nobody may see ends with: `HF_TOKEN`, `db.password`."""
_KEYS = ("api", "access", "secret", "private", "account", "encryption", "signing")
"""Before `key` at the end of a name: `apiKey`, `aws_secret_access_key`."""

_BEHIND = "|".join(f"(?<={kind}{joint})" for kind in _KEYS for joint in ("", "_", "-"))
_NAME = rf"(?:token|secret|passw(?:or)?d|passphrase|signature|credentials?|(?:{_BEHIND})key)"
_QUOTE = r"\\{0,3}[\"']"
_PLAIN = r"[^\s\"',;&<>(){}\[\]\\]+"
_NOTHING = rf"(?!(?:{_QUOTE})?(?:none|null|true|false|<redacted>)\b)"
_VALUE = rf"{_NOTHING}(?:(?P<quote>{_QUOTE})(?P<quoted>[^\n]*?)(?P=quote)|[\"']?(?P<plain>{_PLAIN}))"
_BLANK = r"[ \t]{0,4}"


@dataclass(frozen=True)
class Pattern:
    """One kind of secret. Its groups `quoted` and `plain` are what is masked; without them, all of it."""

    name: str
    words: tuple[str, ...]
    """In lower case: what it begins with."""
    matching: re.Pattern[str]

    def found_at(self, text: str, place: int) -> tuple[int, int, int] | None:
        """Begin and end of the secret, and the end of the whole match, if there is one at this place."""
        match = self.matching.match(text, place)
        if match is None:
            return None
        group = next((name for name in ("quoted", "plain") if match.groupdict().get(name) is not None), 0)
        return *match.span(group), match.end()


def _pattern(name: str, words: Iterable[str], expression: str, flags: re.RegexFlag = re.NOFLAG) -> Pattern:
    return Pattern(name, tuple(words), re.compile(expression, re.ASCII | flags))


_HEADER = rf"authorization(?:{_QUOTE})?{_BLANK}[:=]{_BLANK}(?:{_QUOTE})?(?:basic|digest|token)"
_FLAG = rf"--(?:[a-z0-9]{{1,20}}[_-]){{0,4}}(?:{'|'.join(_NAMES)}|(?:{'|'.join(_KEYS)})[_-]?key)[ \t]{{1,4}}(?!-)"
_LAST_WORDS = ("token", "secret", "pass", "sig", "credential", "key")
_KEY_END = r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----"

PATTERNS = (
    _pattern("private key", ["--"], rf"-----BEGIN [A-Z0-9 ]{{0,40}}PRIVATE KEY-----(?s:.*?)(?:{_KEY_END}|\Z)"),
    _pattern("password in a URL", ["://"], r"://[^\s/@:\"']{0,256}:(?P<plain>[^\s/@\"']{1,512})@"),
    _pattern(
        "Authorization header",
        ["bearer", "authorization"],
        rf"(?:bearer|{_HEADER})[ \t]{{1,4}}(?P<plain>[A-Z0-9._~+/=-]{{6,}})",
        re.IGNORECASE,
    ),
    _pattern("assignment", _LAST_WORDS, rf"{_NAME}(?:{_QUOTE})?{_BLANK}={_BLANK}{_VALUE}", re.IGNORECASE),
    _pattern(
        # A bare `token:` is what parsers complain of; in quotes, or as the end of a name, it is a member.
        "member",
        _LAST_WORDS,
        rf"(?!(?<![\w'\"-])token){_NAME}(?:{_QUOTE})?{_BLANK}:{_BLANK}{_VALUE}",
        re.IGNORECASE,
    ),
    _pattern("flag", ["--"], _FLAG + _VALUE, re.IGNORECASE),
    _pattern("signed URL", ["sig"], r"(?<=[?&])sig=(?P<plain>[^\s&\"']+)", re.IGNORECASE),
    _pattern("AWS access key id", ["akia", "asia"], r"(?<![A-Za-z0-9])A(?:KI|SI)A[0-9A-Z]{16}(?![A-Za-z0-9])"),
    _pattern("GitHub token", ["gh"], r"(?<![A-Za-z0-9_])gh[pousr]_[A-Za-z0-9]{16,}"),
    _pattern("GitHub token", ["git"], r"github_pat_[A-Za-z0-9_]{20,}"),
    _pattern("Hugging Face token", ["hf_"], r"(?<![A-Za-z0-9_])hf_[A-Za-z0-9]{20,}"),
    _pattern("OpenAI or Anthropic key", ["sk-"], r"(?<![A-Za-z0-9_-])sk-[A-Za-z0-9_-]{20,}"),
    _pattern("Slack token", ["xox"], r"(?<![A-Za-z0-9_-])xox[abeoprs]-[A-Za-z0-9-]{10,}"),
    _pattern("GitLab token", ["glpat-"], r"glpat-[A-Za-z0-9_-]{16,}"),
    _pattern("Google key", ["aiza"], r"(?<![A-Za-z0-9_-])AIza[A-Za-z0-9_-]{30,}"),
    _pattern(
        "JSON web token",
        ["eyj"],
        r"(?<![A-Za-z0-9_.-])eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{4,}",
    ),
)

_BY_WORD = {word: tuple(one for one in PATTERNS if word in one.words) for one in PATTERNS for word in one.words}
_CUT_KEY = re.compile(_KEY_END)
_KEY_CHARACTERS = string.ascii_letters + string.digits + "+/=\\\r\n"
_SECRET_NAME = re.compile(rf"{_NAME}\Z", re.ASCII | re.IGNORECASE)


def masked_text(text: str) -> str:
    """The text with every secret in it that the patterns know replaced; names and the rest stay."""
    lowered = text.lower()
    if len(lowered) != len(text):  # one letter has a longer small one
        lowered = text.replace("\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}", "i").lower()
    there = [word for word in _BY_WORD if word in lowered]
    spans = [span for word in there for pattern in _BY_WORD[word] for span in _spans(pattern, word, text, lowered)]
    if "private key-----" in lowered:
        spans += _cut_key(text)
    return _without(text, sorted(spans)) if spans else text


def is_secret_name(name: str) -> bool:
    """Whether the value under this name is a secret, whatever it looks like."""
    return _SECRET_NAME.search(name) is not None


def _spans(pattern: Pattern, word: str, text: str, lowered: str) -> Iterator[tuple[int, int]]:
    place = lowered.find(word)
    while place >= 0:
        found = pattern.found_at(text, place)
        if found is not None:
            yield found[:2]
        place = lowered.find(word, found[2] if found else place + 1)


def _cut_key(text: str) -> Iterator[tuple[int, int]]:
    """The rest of a private key whose beginning is not in the text."""
    end = _CUT_KEY.search(text)
    if end is not None and "-----BEGIN " not in text[: end.start()]:
        yield len(text[: end.start()].rstrip(_KEY_CHARACTERS)), end.end()


def _without(text: str, spans: list[tuple[int, int]]) -> str:
    """Spans that touch or overlap are one secret."""
    parts: list[str] = []
    end = 0
    for begin, stop in spans:
        if begin > end or not parts:
            parts += [text[end:begin], MASK]
        end = max(end, stop)
    return "".join([*parts, text[end:]])
