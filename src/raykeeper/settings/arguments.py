"""A command line as Go's flag package reads it: `-qps 50`, `--qps=50`, `--enable-metrics`, `--enable-metrics=false`.

Pure, and cheap to import. Existing Deployments are written for it.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterator, Mapping, Sequence

from raykeeper.errors import Misconfigured
from raykeeper.settings.flags import Flag

_HELP = frozenset({"-h", "--h", "-help", "--help"})


def asks_for_help(arguments: Sequence[str]) -> bool:
    """Whether the command line asks for the help, in any of Go's spellings; what stands behind `--` is no flag."""
    flags = itertools.takewhile(lambda argument: argument != "--", arguments)
    return not _HELP.isdisjoint(flags)


def parse_arguments(flags: Sequence[Flag], arguments: Sequence[str]) -> dict[str, str]:
    """The text given to each flag, by the flag's name; the last one counts where a flag is repeated.

    Differs from Go in one thing: what is no flag is refused. Go stops reading there without a word, so that after
    `--enable-metrics false` all further flags are lost. An empty argument is skipped: KubeRay's chart may add one.
    """
    table = {flag.name: flag for flag in flags}
    given: dict[str, str] = {}
    rest = iter(arguments)
    for argument in rest:
        if argument == "":
            continue
        name, text = _split(argument)
        flag = _flag(table, name)
        if text is None:
            text = "true" if flag.is_switch else _next(flag, rest)
        given[flag.name] = text
    return given


def parse_values(flags: Sequence[Flag], given: Mapping[str, str]) -> dict[str, object]:
    """The value of each flag that was given; `Misconfigured` names the flag whose text is none."""
    table = {flag.name: flag for flag in flags}
    return {name: table[name].parse(table[name].spelling, text) for name, text in given.items()}


def _split(argument: str) -> tuple[str, str | None]:
    """Name and text of `-name`, `--name`, `-name=text` and `--name=text`."""
    name, equals, text = argument.removeprefix("-").removeprefix("-").partition("=")
    if not argument.startswith("-") or not name or name.startswith("-"):
        cure = "it is no flag; flags start with one or two dashes, and booleans are written --flag=false"
        raise Misconfigured("argument", argument, cure)
    return name, text if equals else None


def _flag(table: Mapping[str, Flag], name: str) -> Flag:
    flag = table.get(name)
    if flag is None:
        similar = difflib.get_close_matches(name, table, n=1)
        hint = f"; did you mean --{similar[0]}?" if similar else "; --help lists all"
        raise Misconfigured("flag", f"--{name}", f"there is no such flag{hint}")
    return flag


def _next(flag: Flag, rest: Iterator[str]) -> str:
    """The argument after a flag, whatever it looks like."""
    try:
        return next(rest)
    except StopIteration:
        raise Misconfigured("flag", flag.spelling, "it needs a value") from None
