"""An entry point taken apart: what runs, and each of its arguments and variables by its name. Pure.

It is for people who compare two runs, not for a shell: where a command can be read in two ways, the same one is taken
for both runs.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from raykeeper.history.entities.job import script_name
from raykeeper.masking import MASK, is_secret_name

SET = "set"
"""The value of an option that has none."""
_CHARS = 8_000
"""Of an entry point that are looked at: people write less."""
_BETWEEN = ";&|"
_VARIABLE = re.compile(r"[A-Za-z_]\w*=")
_ASSIGNMENT = re.compile(r"\+{0,2}[A-Za-z_][\w./@-]*=")
_OPTION = re.compile(r"--?[A-Za-z]")
_REDIRECTION = re.compile(r"\d*>")
_JOINED_STREAM = re.compile(r"\s\d?>&\d")
_SHELL_TEXT = re.compile(r"-[a-z]*c")
_PREFIXES = ("exec", "env", "export", "time", "nohup")

Named = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Command:
    """What runs, without its arguments; and these by their names. Values of secrets are masked."""

    program: str
    arguments: Named = ()
    variables: Named = ()


def parse_entrypoint(text: str) -> Command:
    """Of a text that is masked already: what a secret is, its neighbours tell."""
    parts = _simple_commands(_tokens(text[:_CHARS]))
    chosen = next((place for place, part in enumerate(parts) if _script_place(part) is not None), len(parts) - 1)
    programs, variables, arguments = list[str](), list[tuple[str, str]](), list[tuple[str, str]]()
    for place, part in enumerate(parts):
        found = _simple_command(part, is_chosen=place == chosen)
        programs.append(found.program)
        variables += found.variables
        arguments += found.arguments
    return Command(_joined(programs), _named(arguments), _named(variables))


def _tokens(text: str) -> list[str]:
    text = _JOINED_STREAM.sub("", text)  # its & ends no command
    lexer = shlex.shlex(text, posix=True, punctuation_chars=_BETWEEN)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        return list(lexer)
    except ValueError:  # a quote that does not end
        return text.split()


def _simple_commands(tokens: Iterable[str]) -> list[list[str]]:
    """One list for each, and one for each operator between two of them."""
    parts: list[list[str]] = [[]]
    for token in tokens:
        if token and not token.strip(_BETWEEN):
            parts += [[token], []]
        else:
            parts[-1].append(token)
    return parts


def _script_place(tokens: Sequence[str]) -> int | None:
    """Of the script or module that is run, or of the text that a shell runs."""
    for place, token in enumerate(tokens):
        if place and tokens[place - 1] == "-m":
            return place
        if script_name(token) and not _ASSIGNMENT.match(token):
            return place
    return None


def _simple_command(tokens: Sequence[str], *, is_chosen: bool) -> Command:
    variables = list[tuple[str, str]]()
    rest = list(tokens)
    has_prefix = False
    while rest and (rest[0] in _PREFIXES or _VARIABLE.match(rest[0])):
        has_prefix = True
        if _VARIABLE.match(rest[0]):
            name, _, value = rest[0].partition("=")
            variables.append((name, value))
        del rest[0]
    if not is_chosen:
        return Command(" ".join(rest if has_prefix else tokens), (), tuple(variables))
    rest = rest[: next((place for place, token in enumerate(rest) if _REDIRECTION.match(token)), len(rest))]
    return _with_arguments(rest, tuple(variables))


def _with_arguments(tokens: Sequence[str], variables: Named) -> Command:
    if not tokens:
        return Command("", (), variables)
    place = _script_place(tokens)
    if place is None or place == 0:
        return Command(tokens[0], tuple(_arguments(tokens[1:])), variables)
    before, script, after = list(tokens[1:place]), tokens[place], tokens[place + 1 :]
    joint = [before.pop()] if before and (before[-1] == "-m" or _SHELL_TEXT.fullmatch(before[-1])) else []
    own = tuple(_arguments(before))
    if joint and joint != ["-m"] and " " in script.strip():
        inner = parse_entrypoint(script)
        program, inside, variables = inner.program, inner.arguments, (*variables, *inner.variables)
        return Command(" ".join([tokens[0], *joint, program]), (*own, *inside, *_arguments(after)), variables)
    return Command(" ".join([tokens[0], *joint, script]), (*own, *_arguments(after)), variables)


def _arguments(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """By name; those without one are numbered."""
    rest, numbered, has_options = list(words), 0, True
    while rest:
        word = rest.pop(0)
        if word == "--" and has_options:
            has_options = False
        elif has_options and _OPTION.match(word):
            name, is_assigned, value = word.partition("=")
            if not is_assigned:
                value = rest.pop(0) if rest and rest[0] != "--" and not _OPTION.match(rest[0]) else SET
            yield name, value
        elif _ASSIGNMENT.match(word):
            name, _, value = word.partition("=")
            yield name, value
        else:
            numbered += 1
            yield f"argument {numbered}", word


def _joined(programs: Iterable[str]) -> str:
    """What is left where only variables were set has no operator behind it."""
    parts = list(programs)
    while parts and (not parts[0] or not parts[0].strip(_BETWEEN)):
        del parts[0]
    while parts and (not parts[-1] or not parts[-1].strip(_BETWEEN)):
        parts.pop()
    return " ".join(part for part in parts if part)


def _named(pairs: Iterable[tuple[str, str]]) -> Named:
    """One for each name, with all of its values."""
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(MASK if is_secret_name(name) else value)
    return tuple((name, ", ".join(found)) for name, found in values.items())
