"""Secrets never leave: what is served is masked, whoever asks, by the rules of docs/secrets.md. Pure.

An answer is made of `Masked` values, which this module alone makes, so that nobody can forget to mask one. Pages are
made of `Html`, whose text is masked where it is escaped. Ray masks for browsers only, because a live cluster's owner
asks with the CLI; a history server is asked by people who never had access to the cluster.

Each pattern begins with a word, and is tried only where that word stands: finding words is a hundred times quicker than
matching, and most texts hold none. Every repetition in a pattern is of one class of characters, and what matched is not
looked at again, so the time grows with the length of the text alone.
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import lru_cache, partial
from typing import Any, TypeVar

import msgspec

MASK = "<redacted>"

_KEYS = ("api", "access", "secret", "private", "account", "encryption", "signing")
"""Before `key` at the end of a name: `apiKey`, `aws_secret_access_key`."""
_PASSES = ("forward", "backward", "first", "second", "last", "final", "num", "n")
"""Before `pass` in names of what is no password."""

_QUOTE = r"\\{0,3}[\"']"
_PLAIN = r"[^\s\"',;&<>(){}\[\]\\]+"
_NOTHING = rf"(?!(?:{_QUOTE})?(?:none|null|true|false|<redacted>)\b)"
_LISTED = r"[\[{](?P<listed>[^\n\]}]+)"  # all of it, since nobody can tell which element is the secret
_VALUE = rf"{_NOTHING}(?:(?P<quote>{_QUOTE})(?P<quoted>[^\n]*?)(?P=quote)|{_LISTED}|[\"']?(?P<plain>{_PLAIN}))"
_BLANK = r"[ \t]{0,4}"
_NO_FLAG = r"(?:[ \t]{1,4}(?!-))?"  # as in `--redis_password= --port=6379`, where there is none

_TO_VALUE = rf"(?:{_QUOTE})?{_BLANK}[:=,]?\s{{0,20}}(?:{_QUOTE})?"
_COUNT = r"\d"
_PATH = r"(?:[/~]|[a-z]:[\\/])"
_KEY = rf"(?:{'|'.join(f'(?<={kind}{joint})' for kind in _KEYS for joint in ('', '_', '-'))})keys?"
_NO_MEASURE = "".join(f"(?<!{word}{joint})" for word in _PASSES for joint in "_-")
_PASS = rf"(?:(?<![a-z]){_NO_MEASURE}|(?-i:(?<=[a-z])(?=P))|(?<=ssh)|(?<=db))pass"  # DB_PASS, dbPass; no bypass
_NAME = (
    rf"(?:token(?:s(?!{_TO_VALUE}{_COUNT}))?|secret(?:(?<!pullsecret)s)?|passw(?:or)?ds?|passphrases?|passcodes?"
    rf"|{_PASS}|pwd(?!{_TO_VALUE}{_PATH})|signatures?|credentials?|{_KEY})"
)
"""What the name of a value that nobody may see ends with: `HF_TOKEN`, `db.password`, `apiKeys`.

`max_tokens=512` is a count, `PWD=/home/ray` a folder, and `imagePullSecrets` are names.
"""


@dataclass(frozen=True)
class Pattern:
    """One kind of secret. Its groups `quoted`, `listed` and `plain` are what is masked; without them, all of it."""

    name: str
    words: tuple[str, ...]
    """In lower case: what it begins with."""
    matching: re.Pattern[str]

    def found_at(self, text: str, place: int) -> tuple[int, int, int] | None:
        """Begin and end of the secret, and the end of the whole match, if there is one at this place."""
        match = self.matching.match(text, place)
        return None if match is None else self.secret_in(match)

    def secret_in(self, match: re.Match[str]) -> tuple[int, int, int]:
        """As `found_at`."""
        group = next((name for name in ("quoted", "listed", "plain") if match.groupdict().get(name) is not None), 0)
        return *match.span(group), match.end()


def _pattern(name: str, words: Iterable[str], expression: str, flags: re.RegexFlag = re.NOFLAG) -> Pattern:
    return Pattern(name, tuple(words), re.compile(expression, re.ASCII | flags))


_HEADER = rf"authorization(?:{_QUOTE})?{_BLANK}[:=]{_BLANK}(?:{_QUOTE})?(?:basic|digest|token)"
_FLAG_NAME = (
    rf"--(?:[a-z0-9]{{1,20}}[_.-]){{0,4}}(?:(?-i:[a-z0-9]{{1,20}}(?=[A-Z]))|{'|'.join(_KEYS)})?{_NAME}"  # --dbPassword
)
_NEXT = rf"(?:[ \t]{{1,4}}(?!-)|{_QUOTE},\s{{0,20}}(?!(?:{_QUOTE})?-))"  # a blank, or the next element of a list
_FLAG = _FLAG_NAME + _NEXT
_LAST_WORDS = ("token", "secret", "pass", "pwd", "sig", "credential", "key")
_KEY_END = r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----"

PATTERNS = (
    _pattern("private key", ["--"], rf"-----BEGIN [A-Z0-9 ]{{0,40}}PRIVATE KEY-----(?s:.*?)(?:{_KEY_END}|\Z)"),
    _pattern("password in a URL", ["://"], r"://[^\s/:\"']{0,256}:(?P<plain>[^\s/\"']{1,512})@"),
    _pattern(
        "Authorization header",
        ["bearer", "authorization"],
        rf"(?:bearer|{_HEADER})[ \t]{{1,4}}(?P<plain>[A-Z0-9._~+/=-]{{6,}})",
        re.IGNORECASE,
    ),
    _pattern("assignment", _LAST_WORDS, rf"{_NAME}(?:{_QUOTE})?{_BLANK}={_NO_FLAG}{_VALUE}", re.IGNORECASE),
    _pattern(
        # A bare `token:` is what parsers complain of, `pass: 5` counts tests; quoted or behind a word they are members.
        "member",
        _LAST_WORDS,
        rf"(?!(?<![\w'\"-])(?:tokens?|pass)\b){_NAME}(?:{_QUOTE})?{_BLANK}:{_BLANK}{_VALUE}",
        re.IGNORECASE,
    ),
    _pattern("flag", ["--"], _FLAG + _VALUE, re.IGNORECASE),
    _pattern("signed URL", ["sig"], r"(?<=[?&])sig=(?P<plain>[^\s&\"']+)", re.IGNORECASE),
    _pattern("AWS access key id", ["akia", "asia"], r"(?<![A-Za-z0-9])A(?:KI|SI)A[0-9A-Z]{16}(?![A-Za-z0-9])"),
    _pattern("Alibaba access key id", ["ltai"], r"(?<![A-Za-z0-9])LTAI[A-Za-z0-9]{12,26}(?![A-Za-z0-9])"),
    _pattern("Alibaba access key id", ["sts."], r"(?<![A-Za-z0-9])STS\.[A-Za-z0-9]{16,}"),
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
_SHORTEST = 6  # `://:x@`
_TRIED_SINGLY = 64
"""Places of a word that are looked at one by one; where there are more, the expression itself looks for the next."""
_CUT_KEY = re.compile(_KEY_END)
_KEY_CHARACTERS = string.ascii_letters + string.digits + "+/=\\\r\n"
_SECRET_NAME = re.compile(rf"(?:{_NAME}|authorization)\Z", re.ASCII | re.IGNORECASE)
_END_OF_NAME = _pattern(
    "end of a name", [*_LAST_WORDS, "authorization"], rf'(?:{_NAME}|authorization)\\{{0,9}}"', re.IGNORECASE
)
_CACHED_NAMES = 1 << 16  # a page of 10,000 rows has the same few names in each
_BARE_SECRET = re.compile("AKIA|ASIA|AIza|LTAI")
"""In the secrets that are letters and digits alone. Every other pattern needs another character."""
_SHORT_CHARS = 64
_CACHED_TEXTS = 1 << 14  # states, functions, addresses: most short texts of a page are repeated in each row


def masked_text(text: str, *, keeps_lines: bool = False) -> str:
    """The text with every secret in it that the patterns know replaced; names and the rest stay.

    A private key takes several lines: with `keeps_lines` the lines after it stay at their numbers.
    """
    spans = _secrets(text)
    return _without(text, spans, keeps_lines=keeps_lines) if spans else text


def masked_part(text: str, begin: int, end: int) -> str:
    """The characters between two places without secrets, also without those that lie in them in part.

    Whoever chooses where a text is cut could otherwise have half of a secret, which no pattern knows.
    """
    spans = [(max(one, begin) - begin, min(other, end) - begin) for one, other in _secrets(text)]
    return _without(text[begin:end], [(one, other) for one, other in spans if one < other])


CONTEXT_BYTES = 8 * 1024
"""Looked at on both sides of a text that is cut, more than a private key has: a secret that is cut is still known."""


def masked_between(before: str, text: str, after: str) -> list[str]:
    """The lines of a text that was cut, as if all that stands around were there, too."""
    lines = f"{before}{text}{after}".split("\n")
    masked = masked_lines(lines)
    first, begin = before.count("\n"), len(before.rpartition("\n")[2])
    last = first + text.count("\n")
    end = len(lines[last]) - len(after.partition("\n")[0])
    for place in {first, last}:
        cut = (begin if place == first else 0, end if place == last else len(lines[place]))
        if masked[place] != MASK and cut != (0, len(lines[place])):
            masked[place] = masked_part(lines[place], *cut)
    return masked[first : last + 1]


def _secrets(text: str) -> list[tuple[int, int]]:
    """Where they are, in order."""
    if len(text) < _SHORTEST:
        return []
    lowered = _lowered(text)
    there = [word for word in _BY_WORD if word in lowered]
    spans = [span for word in there for pattern in _BY_WORD[word] for span in _spans(pattern, word, text, lowered)]
    if "private key-----" in lowered:
        spans += _cut_key(text)
    return sorted(spans)


def _lowered(text: str) -> str:
    """In lower case, every character at its place."""
    lowered = text.lower()
    if len(lowered) != len(text):  # one letter has a longer small one
        lowered = text.replace("\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}", "i").lower()
    return lowered


def is_secret_name(name: str) -> bool:
    """Whether the value under this name is a secret, whatever it looks like."""
    return _SECRET_NAME.search(name) is not None


def _holds_secret_name(text: str) -> bool:
    """Whether a text in JSON ends like the name of a secret: a member, a flag in a list, or the `name` of a `value`."""
    lowered = _lowered(text)
    return any(next(_spans(_END_OF_NAME, word, text, lowered), None) for word in _END_OF_NAME.words if word in lowered)


def _spans(pattern: Pattern, word: str, text: str, lowered: str) -> Iterator[tuple[int, int]]:
    place = lowered.find(word)
    for _ in range(_TRIED_SINGLY):
        if place < 0:
            return
        found = pattern.found_at(text, place)
        if found is not None:
            yield found[:2]
        place = lowered.find(word, found[2] if found else place + 1)
    if place >= 0:
        yield from (pattern.secret_in(match)[:2] for match in pattern.matching.finditer(text, place))


def _cut_key(text: str) -> Iterator[tuple[int, int]]:
    """The rest of a private key whose beginning is not in the text."""
    end = _CUT_KEY.search(text)
    if end is not None and "-----BEGIN " not in text[: end.start()]:
        yield len(text[: end.start()].rstrip(_KEY_CHARACTERS)), end.end()


KEY_LINE = "PRIVATE KEY-----"
"""How the first and the last line of a private key end."""
_FIRST_LINE, _LAST_LINE = "-----BEGIN ", "-----END "


class KeyLines:
    """Knows the lines of a private key in a text that is taken line by line: by its first line alone."""

    def __init__(self) -> None:
        self._is_inside = False

    def holds(self, line: str) -> bool:
        """Whether the next line stands between the first and the last of a key, which `masked_text` knows."""
        if KEY_LINE in line:
            self._is_inside = _FIRST_LINE in line and _LAST_LINE not in line
            return False
        self._is_inside = self._is_inside and _may_be_key(line)
        return self._is_inside


def masked_lines(lines: Sequence[str]) -> list[str]:
    """Each line without its secrets; a private key is known by its first or last line, and takes several."""
    key = KeyLines()
    shown = [MASK if key.holds(line) else masked_text(line) for line in lines]
    for place, line in enumerate(lines):
        if KEY_LINE in line and _LAST_LINE in line:
            _hide_before(lines, shown, place)
    return shown


def _hide_before(lines: Sequence[str], shown: list[str], last: int) -> None:
    """The lines of a key before its last one."""
    for place in range(last - 1, -1, -1):
        if KEY_LINE in lines[place] or not _may_be_key(lines[place]):
            return
        shown[place] = MASK


def _may_be_key(line: str) -> bool:
    """What stands in the lines of a key: no words."""
    return " " not in line.strip()


def _without(text: str, spans: list[tuple[int, int]], *, keeps_lines: bool = False) -> str:
    """Spans that touch or overlap are one secret."""
    parts: list[str] = []
    end = 0
    for begin, stop in spans:
        if begin > end or not parts:
            parts += [text[end:begin], MASK]
            end = begin
        if keeps_lines:
            parts.append("\n" * text.count("\n", end, stop))
        end = max(end, stop)
    return "".join([*parts, text[end:]])


ENV_VARS = ("env_vars", "envVars")
"""Ray's rule: names stay, every value is masked, whatever it looks like."""
_SERIALIZED = ("serialized_runtime_env", "serializedRuntimeEnv")
TEXT_LIMIT = 256 << 10
"""Characters of one text in an answer; the rest of a longer one is left out, and said so, because masking takes time.
Ray keeps far less of an error."""
DEPTH_LIMIT = 100
"""A value that is nested deeper is masked as a whole. What Ray answers is nested ten deep."""
_CACHED_ENVIRONMENTS = 1024  # a session has few different ones, and each stands in thousands of rows
_SECRET_FLAG = re.compile(rf"{_FLAG_NAME}\Z", re.ASCII | re.IGNORECASE)
_NAMING = ("name", "func_or_class_name", "class_name")
_SMALL_NUMBER = 1000
"""A number below it is no secret, whatever its name: `"license_token": 2.0` is an amount of a resource."""
_JSON_BEGIN = re.compile(r"\s*([\[{\"])")
_COUNT_TEXT, _PATH_TEXT = re.compile(_COUNT), re.compile(_PATH, re.IGNORECASE)
_encoder = msgspec.json.Encoder()

T = TypeVar("T")
_NO_NAME = "null"  # as JSON calls a key of nothing: what an event did not name is counted all the same


@dataclass(frozen=True, slots=True)
class Masked:
    """JSON without secrets: what an answer is made of. `masked` makes it, as `tag` makes Html."""

    json: msgspec.Raw


def masked(value: object) -> Masked:
    """The value as JSON with every secret in it masked. What is `Masked` already stays as it is."""
    return Masked(msgspec.Raw(_encoder.encode(masked_value(value))))


def of_our_own(document: bytes) -> Masked:
    """JSON that is part of the program, such as the description of its API, byte for byte."""
    return Masked(msgspec.Raw(document))


def masked_value(value: T) -> T:
    """The same value, of any shape, with every secret in it masked: the one walk over all that is served.

    Masked are the values of `env_vars`, those of members and flags whose name is a secret's, of any shape, and what the
    patterns find in any text, JSON inside a text too. Words of ours (enums), names of members, yes and no, and small
    numbers stay.
    """
    found: Any = _walked(value, 0)
    same: T = found
    return same


def _walked(value: Any, depth: int) -> Any:
    kind = type(value)  # this walk is most of the time of a large page, so the usual kinds come first
    if kind is str:
        return _masked_string(value)
    if value is None or kind is int or isinstance(value, (int, float, str)):  # a str of another kind is a word of ours
        return value
    if depth >= DEPTH_LIMIT:
        return MASK
    if kind is dict or isinstance(value, Mapping):
        return _walked_object(value, depth)
    if isinstance(value, (list, tuple)):
        return type(value)(_elements(value, depth))
    if isinstance(value, Masked):
        return value.json
    if isinstance(value, msgspec.Raw):
        return _masked_raw(value, depth)
    if isinstance(value, msgspec.Struct):
        changed = {name: _member(name, getattr(value, name), depth) for name in value.__struct_fields__}
        return msgspec.structs.replace(value, **changed)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{one.name: _member(one.name, getattr(value, one.name), depth) for one in fields(value)})
    return value


def _walked_object(value: Mapping[Any, Any], depth: int) -> dict[Any, Any]:
    shown = {_NO_NAME if name is None else name: _member(name, part, depth) for name, part in value.items()}
    if "value" in value:
        _mask_named_value(value, shown, depth)
    return shown


def _member(name: Any, part: Any, depth: int) -> Any:
    if part is None or part == "":
        return part
    rule = _rule_of_name(name) if type(name) is str else None
    if rule is None:
        return _masked_string(part) if type(part) is str else _walked(part, depth + 1)
    return rule(part, depth)


@lru_cache(_CACHED_NAMES)
def _rule_of_name(name: str) -> Callable[[Any, int], Any] | None:
    """How the value of a member of this name is masked; None: as any other value."""
    if name in ENV_VARS:
        return _masked_variables
    if name in _SERIALIZED:
        return lambda part, depth: masked_environment_text(part) if type(part) is str else _walked(part, depth + 1)
    if not is_secret_name(name):
        return None
    hidden, lowered = partial(_hidden_under, name), name.lower()
    if lowered.endswith("tokens"):
        return lambda part, depth: _walked(part, depth + 1) if _is_count(part) else hidden(part, depth)
    if lowered.endswith("pwd"):
        return lambda part, depth: _walked(part, depth + 1) if _is_path(part) else hidden(part, depth)
    return hidden


def _is_count(part: Any) -> bool:
    return isinstance(part, (int, float)) or (type(part) is str and bool(_COUNT_TEXT.match(part)))


def _is_path(part: Any) -> bool:
    return type(part) is str and bool(_PATH_TEXT.match(part))


def _hidden_under(name: str, part: Any, depth: int) -> Any:
    """Ray has maps of functions, actors and deployments by their names. A record that says that it is called so is
    about a thing of the user's, which may be called `count tokens`, and no secret.
    """
    if isinstance(part, msgspec.Raw):
        part = _decoded(bytes(part))
    if isinstance(part, Mapping) and any(part.get(naming) == name for naming in _NAMING):
        return _walked(part, depth + 1)
    return _hidden(part, depth)


def _hidden(part: Any, depth: int) -> Any:
    """What stands under the name of a secret: nothing of it but its shape, and what can be no secret."""
    if part is None or part == "" or (isinstance(part, str) and type(part) is not str):
        return part
    if isinstance(part, (int, float)):
        return part if abs(part) < _SMALL_NUMBER else MASK
    if isinstance(part, msgspec.Raw):
        return _hidden(_decoded(bytes(part)), depth)
    if depth < DEPTH_LIMIT and isinstance(part, Mapping):
        return {_NO_NAME if name is None else name: _hidden(one, depth + 1) for name, one in part.items()}
    if depth < DEPTH_LIMIT and isinstance(part, (list, tuple)):
        return type(part)(_hidden(one, depth + 1) for one in part)
    return MASK


def _mask_named_value(value: Mapping[Any, Any], shown: dict[Any, Any], depth: int) -> None:
    """Kubernetes writes members as `{"name": "PASSWORD", "value": …}`, others with `key`."""
    for naming in ("name", "key"):
        name = value.get(naming)
        rule = _rule_of_name(name) if type(name) is str else None
        if rule is not None:
            shown["value"] = rule(value["value"], depth)


def _masked_variables(part: Any, depth: int) -> Any:
    """`env_vars`: names stay, every value goes."""
    if not part:
        return _walked(part, depth + 1)
    return dict.fromkeys(part, MASK) if isinstance(part, Mapping) else MASK


def _elements(values: Iterable[Any], depth: int) -> Iterator[Any]:
    """Command lines are lists: what follows `--password` is one."""
    rule = None
    for value in values:
        yield _walked(value, depth + 1) if rule is None else rule(value, depth)
        is_flag = type(value) is str and value.startswith("--") and bool(_SECRET_FLAG.match(value))
        rule = _rule_of_name(value) if is_flag else None


def _masked_string(text: str) -> str:
    if len(text) > _SHORT_CHARS:
        return _masked_long(text)
    if text.isalnum() and not _BARE_SECRET.search(text):
        return text  # an id, mostly: too many different ones to remember
    return _masked_short(text)


@lru_cache(_CACHED_TEXTS)
def _masked_short(text: str) -> str:
    return masked_maybe_json(text)


def _masked_long(text: str) -> str:
    if len(text) > TEXT_LIMIT:
        text = f"{text[:TEXT_LIMIT]}… ({len(text) - TEXT_LIMIT} more characters are not served)"
    return masked_maybe_json(text)


def masked_maybe_json(text: str) -> str:
    """A text that may be JSON: what only its members and lists tell is masked too.

    All of one is masked that has `env_vars` and cannot be read, or that can be read in two ways.
    """
    has_variables = any(name in text for name in ENV_VARS)
    begin = _JSON_BEGIN.match(text)
    if not has_variables and not (begin and ("\\u" in text or _holds_secret_name(text))):
        return masked_text(text)
    try:
        value = _loaded(text)
    except _Ambiguous:
        return MASK
    except (ValueError, RecursionError):
        return MASK if has_variables and begin and begin[1] != '"' else masked_text(text)
    shown = masked_value(value)
    return masked_text(text) if shown == value else json.dumps(shown)


@lru_cache(_CACHED_ENVIRONMENTS)
def masked_environment_text(text: str) -> str:
    """A runtime environment written as JSON. One without secrets stays byte for byte; one that cannot be read goes."""
    try:
        environment = _loaded(text) if text else {}
    except (ValueError, RecursionError):
        return MASK
    if not isinstance(environment, dict):
        return MASK
    shown = masked_value(environment)
    return text if shown == environment else json.dumps(shown, sort_keys=True)


class _Ambiguous(ValueError):
    """A member comes twice, so that one reader sees another value than the next."""


def _loaded(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_object)


def _object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    if len(found) < len(members):
        raise _Ambiguous("a member comes twice")
    return found


def _masked_raw(raw: msgspec.Raw, depth: int) -> Any:
    """JSON from elsewhere; nearly all has nothing to mask, and is passed on as it is."""
    data = bytes(raw)
    is_clean = _is_clean_short(data) if len(data) <= _SHORT_CHARS else _is_clean(data)
    return raw if is_clean else _walked(_decoded(data), depth)


def _is_clean(data: bytes) -> bool:
    """Whether it may be passed on unread: no pattern and no name of a secret is in its text, nor an escape."""
    text = data.decode(errors="replace")
    if len(text) > TEXT_LIMIT or "\\u" in text or any(name in text for name in ENV_VARS):
        return False
    return not _holds_secret_name(text) and masked_text(text) == text


@lru_cache(_CACHED_TEXTS)
def _is_clean_short(data: bytes) -> bool:
    """Resources and labels, mostly, which are the same in many rows."""
    return _is_clean(data)


def _decoded(data: bytes) -> Any:
    """The value of JSON from elsewhere; what cannot be read is masked as a whole."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return MASK
