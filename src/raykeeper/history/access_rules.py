"""Who of those that an identity provider knows may come in, and which namespaces they see. Pure, but for its file.

The file is YAML, or JSON, which is YAML too. A mistake in it stops the server at its start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from raykeeper.errors import Misconfigured
from raykeeper.history.visibility import EVERYTHING, NOTHING, Visibility

ALL: Final = "*"
MAX_BYTES: Final = 256 << 10
MAX_NAMES: Final = 10_000
_PARTS: Final = ("everybody", "groups", "users")


@dataclass(frozen=True)
class Person:
    """Somebody whom an identity provider vouches for."""

    user: str
    """As Kubernetes would call them."""
    name: str = ""
    """As people call them."""
    uid: str = ""
    """Of Alibaba RAM, or the subject of any other provider."""
    email: str = ""
    """Only if the provider verified it."""
    groups: tuple[str, ...] = ()

    @property
    def ids(self) -> frozenset[str]:
        """By which rules may name them."""
        return frozenset({self.user, self.uid, in_lower_case(self.email)} - {""})


def in_lower_case(email: str) -> str:
    """An address as rules have it. Others than those of ASCII stay as they are: to Python the Kelvin sign is a k."""
    return email.lower() if email.isascii() else email


@dataclass(frozen=True)
class NamespaceMap:
    """Which namespaces groups and people see."""

    everybody: Visibility = NOTHING
    groups: Mapping[str, Visibility] = field(default_factory=dict)
    users: Mapping[str, Visibility] = field(default_factory=dict)
    """By user name, uid, or e-mail address in lower case."""

    def visibility(self, person: Person) -> Visibility:
        """All that somebody sees by any rule."""
        of_groups = (self.groups.get(group, NOTHING) for group in person.groups)
        of_person = (self.users.get(id_, NOTHING) for id_ in person.ids)
        return _together([self.everybody, *of_groups, *of_person])


def _together(parts: Iterable[Visibility]) -> Visibility:
    seen = set[str]()
    for part in parts:
        if part.namespaces is None:
            return EVERYTHING
        seen |= part.namespaces
    return Visibility(frozenset(seen)) if seen else NOTHING


@dataclass(frozen=True)
class AccessRules:
    """Who may come in. Without any list, whoever the provider knows and for whom the map has a namespace."""

    uids: frozenset[str] = frozenset()
    emails: frozenset[str] = frozenset()
    """In lower case; `*@example.org` stands for all of a domain."""
    groups: frozenset[str] = frozenset()
    namespaces: NamespaceMap | None = None
    """None: whoever may come in sees everything, or what Kubernetes says."""

    @property
    def has_lists(self) -> bool:
        return bool(self.uids or self.emails or self.groups)

    def refusal(self, person: Person) -> str:
        """Why somebody may not come in; empty where they may."""
        if self.has_lists and not self._is_listed(person):
            return "You are on none of the lists of people who may see this server."
        if self.namespaces is not None and self.namespaces.visibility(person) == NOTHING:
            return "You, and the groups you are in, have no namespace on this server."
        return ""

    def visibility(self, person: Person) -> Visibility:
        """What somebody who may come in sees by the map."""
        return EVERYTHING if self.namespaces is None else self.namespaces.visibility(person)

    def knows(self, group: str) -> bool:
        """Whether it matters here that somebody is in this group."""
        return group in self.groups or (self.namespaces is not None and group in self.namespaces.groups)

    def _is_listed(self, person: Person) -> bool:
        email = in_lower_case(person.email)
        domain = f"*@{email.rpartition('@')[2]}" if email else ""
        return (
            ALL in self.uids
            or person.uid in self.uids
            or not self.emails.isdisjoint({email, domain} - {""})
            or not self.groups.isdisjoint(person.groups)
        )


def read_namespace_map(setting: str, path: Path) -> NamespaceMap:
    """The map in a file. Raises `Misconfigured`."""
    import yaml  # only for those who have such a file

    try:
        if path.stat().st_size > MAX_BYTES:
            raise Misconfigured(setting, str(path), f"it may have {MAX_BYTES >> 10} KB")
        found = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as exc:
        raise Misconfigured(setting, str(path), f"it must be a readable YAML file ({exc})") from exc
    try:
        return parse_namespace_map(found)
    except ValueError as exc:
        raise Misconfigured(setting, str(path), str(exc)) from exc


def parse_namespace_map(found: Any) -> NamespaceMap:
    """Raises ValueError, in words."""
    if not isinstance(found, dict) or not found or set(found) - set(_PARTS):
        raise ValueError(f"it must have some of the keys {', '.join(_PARTS)}, and no others")
    users = _rows("users", found.get("users"))
    lowered = {in_lower_case(name) if "@" in name else name: seen for name, seen in users.items()}
    everybody = _visibility("everybody", found["everybody"]) if "everybody" in found else NOTHING
    return NamespaceMap(everybody, _rows("groups", found.get("groups")), lowered)


def _rows(part: str, found: Any) -> dict[str, Visibility]:
    if found is None:
        return {}
    if not isinstance(found, dict) or len(found) > MAX_NAMES or not all(isinstance(name, str) for name in found):
        raise ValueError(f"{part}: must map names to lists of namespaces; put numbers in quotes")
    return {name: _visibility(f"{part}: {name}", names) for name, names in found.items()}


def _visibility(where: str, names: Any) -> Visibility:
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise ValueError(f'{where}: must be a list of namespaces, such as [team-a, team-b], or ["*"] for all')
    if ALL in names:
        return EVERYTHING
    if any(ALL in name for name in names):
        raise ValueError(f'{where}: patterns are not known; name each namespace, or ["*"] for all')
    return Visibility(frozenset(names))
