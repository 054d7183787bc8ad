"""What a request to the API server asks for, read from its method and path as the API server reads them. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, unquote

from raykeeper.api.meta import JSON

_VERBS: Final = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_VERBS_IN_PATHS: Final = frozenset({"proxy", "watch"})
"""An older way to say what is wanted: `/api/v1/watch/pods`."""
_UNREADABLE: Final = re.compile(r";|%(?![0-9A-Fa-f]{2})")
"""A parameter with this in it counts to Go as not there."""
_NAMESPACE_SUBRESOURCES: Final = frozenset({"status", "finalize"})
_NAME_FIELD: Final = "metadata.name"


@dataclass(frozen=True)
class Attributes:
    """The verb and the thing, as a SubjectAccessReview has them."""

    verb: str
    path: str = ""
    """Of a request that is about no resource; empty for the others."""
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    def to_spec(self) -> JSON:
        """The part of a review's spec that says what is asked for."""
        if self.path:
            return {"nonResourceAttributes": {"path": self.path, "verb": self.verb}}
        names = ("verb", "group", "version", "resource", "subresource", "namespace", "name")
        return {"resourceAttributes": {name: getattr(self, name) for name in names if getattr(self, name)}}

    def refusal(self, who: str) -> str:
        """The API server's sentence for somebody who may not."""
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{resource} is forbidden: {who} cannot {self}"

    def __str__(self) -> str:
        """As the API server says what somebody may not do."""
        if self.path:
            return f'{self.verb} path "{self.path}"'
        resource = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        where = f'in the namespace "{self.namespace}"' if self.namespace else "at the cluster scope"
        return f'{self.verb} resource "{resource}" in API group "{self.group}" {where}'


def attributes_of(method: str, target: str) -> Attributes:
    """What a request asks for; `target` is its path with the query, percent-encoded."""
    path, _, query = target.partition("?")
    parts = [unquote(part) for part in path.strip("/").split("/")]
    head = _group_version(parts)
    if head is None:
        return Attributes(method.lower(), path=unquote(path))
    group, version, rest = head
    verb = _VERBS.get(method.upper(), "")
    if rest[0] in _VERBS_IN_PATHS and len(rest) > 1:
        verb, *rest = rest
    namespace, resource, name, subresource = _place(rest)
    options = _options(query)
    if not name and verb in ("get", "delete"):
        verb = {"get": "list", "delete": "deletecollection"}[verb]
        if verb == "list":
            verb = "watch" if options.get("watch", "false").lower() not in ("false", "0") else verb
            name = _selected_name(options.get("fieldSelector", ""))
    return Attributes(
        verb,
        group=group,
        version=version,
        resource=resource,
        subresource=subresource,
        namespace=namespace,
        name=name,
    )


def _options(query: str) -> dict[str, str]:
    """The first value of each parameter, which is the one that counts."""
    readable = [pair for pair in query.split("&") if not _UNREADABLE.search(pair)]
    found: dict[str, str] = {}
    for name, value in parse_qsl("&".join(readable), keep_blank_values=True):
        found.setdefault(name, value)
    return found


def _group_version(parts: list[str]) -> tuple[str, str, list[str]] | None:
    """Group, version and what follows; None for a path that is about no resource."""
    if parts[0] == "api" and len(parts) > 2:
        return "", parts[1], parts[2:]
    if parts[0] == "apis" and len(parts) > 3:
        return parts[1], parts[2], parts[3:]
    return None


def _place(rest: list[str]) -> tuple[str, str, str, str]:
    """Namespace, resource, name and subresource."""
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in _NAMESPACE_SUBRESOURCES:
            rest = rest[2:]
    resource, name, subresource, *_ = [*rest, "", ""]
    return namespace, resource, name, subresource


def _selected_name(selector: str) -> str:
    """The one name that a field selector leaves, which counts as the request's name."""
    for term in selector.split(","):
        field, equals, value = term.partition("==" if "==" in term else "=")
        if equals and field == _NAME_FIELD:
            return value
    return ""
