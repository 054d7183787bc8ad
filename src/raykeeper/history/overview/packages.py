"""The packages of a runtime environment, one by one: of pip, uv and conda. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_ANY = "any version"
_LISTED = "listed"
"""The version of what has a name alone."""
_PIP = ("pip", "uv")
_REQUIREMENT = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*(?P<extras>\[[^\]]*\])?\s*(?P<rest>(?:[@=<>!~;].*)?)"
)
_CONDA = re.compile(r"(?:[^\s:]+::)?(?P<name>[A-Za-z0-9_][A-Za-z0-9._-]*)\s*(?P<rest>(?:[=<>! ].*)?)")
_EGG = re.compile(r"[#&]egg=(?P<name>[A-Za-z0-9._-]+)")

Packages = list[tuple[str, str]]
"""Names with their versions, or with what they are wanted to be."""


def packages_of(environment: Mapping[str, Any]) -> tuple[Packages, dict[str, Any]]:
    """The packages, and what else the environment says. What is no list of packages stays where it is."""
    packages, rest = Packages(), dict(environment)
    for member in _PIP:
        listed, others = _listed(environment.get(member), "packages")
        if listed is not None:
            packages += map(_requirement, filter(None, map(_text, listed)))
            _put(rest, member, others)
    listed, others = _listed(environment.get("conda"), "dependencies")
    if listed is not None:
        packages += _of_conda(listed)
        _put(rest, "conda", others)
    return packages, rest


def _listed(value: Any, member: str) -> tuple[list[Any] | None, dict[str, Any]]:
    """The list itself, or the one under this name; and what stands beside it."""
    if isinstance(value, list):
        return value, {}
    if isinstance(value, Mapping) and isinstance(value.get(member), list):
        return value[member], {name: part for name, part in value.items() if name != member}
    return None, {}


def _put(rest: dict[str, Any], member: str, others: dict[str, Any]) -> None:
    del rest[member]
    if others:
        rest[member] = others


def _text(one: Any) -> str:
    return one.strip() if isinstance(one, str) else json.dumps(one, sort_keys=True)


def _requirement(text: str) -> tuple[str, str]:
    if text.startswith("-"):
        option, _, value = text.partition(" ")
        return option, value.strip() or _LISTED
    found = _REQUIREMENT.fullmatch(text)
    if found:
        version = _version(found["rest"])
        return _canonical(found["name"]), f"{version} {found['extras']}" if found["extras"] else version
    egg = _EGG.search(text)
    if "://" in text:
        return (_canonical(egg["name"]) if egg else text.rpartition("/")[2] or text), text
    return text, _LISTED


def _version(wanted: str) -> str:
    if wanted.startswith("@"):
        return wanted[1:].strip()
    number, is_marked, marker = wanted.partition(";")
    number = number.strip()
    is_exact = number.startswith("==") and "," not in number and "*" not in number
    shown = number.lstrip("= ") if is_exact else number
    return f"{shown or _ANY} ; {marker.strip()}" if is_marked else shown or _ANY


def _of_conda(listed: Iterable[Any]) -> Iterator[tuple[str, str]]:
    for one in listed:
        if isinstance(one, Mapping):  # {"pip": [...]}, as in an environment.yml
            yield from packages_of(one)[0]
            continue
        text = _text(one)
        found = _CONDA.fullmatch(text)
        version = found["rest"].strip() if found else _LISTED
        if version.startswith("="):
            version = version.lstrip("= ")
        yield f"{found['name'].lower() if found else text} (conda)", version or _ANY


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
