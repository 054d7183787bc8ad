"""Every request we ever send to the API server, as data: pure, so that URLs and bodies are tested without a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple
from urllib.parse import quote, urlencode

import msgspec

from raykeeper.api.meta import JSON, ObjectKey, Resource

Selector = str | Mapping[str, str]
"""A label or field selector: Kubernetes' own text, or pairs that must all be equal."""

Propagation = Literal["Foreground", "Background", "Orphan"]
"""What happens to the children of a deleted object."""

Query = Mapping[str, str | int | bool | None]
"""Query parameters; None and "" are left out."""

_APPLY = "application/apply-patch+yaml"  # any JSON is YAML
_MERGE_PATCH = "application/merge-patch+json"
_JSON_PATCH = "application/json-patch+json"


class Request(NamedTuple):
    """One HTTP request, and how a person would call it."""

    method: str
    path: str
    """Percent-encoded, with the query."""
    about: str
    """What errors call it, such as `get pods default/head`."""
    body: bytes | None = None
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    """Beside our credentials: for a server that the API server passes the request on to."""

    @property
    def is_write(self) -> bool:
        return self.method != "GET"

    @property
    def namespace(self) -> str:
        """The namespace it is about; empty where it is about none, or about all."""
        return self.path.partition("?")[0].partition("/namespaces/")[2].partition("/")[0]


def read_one(resource: Resource[Any], key: ObjectKey) -> Request:
    return Request("GET", resource.path(*key), f"get {resource} {key}")


def read_page(
    resource: Resource[Any],
    namespace: str | None,
    *,
    labels: Selector | None,
    fields: Selector | None,
    limit: int | None,
    token: str | None,
    resource_version: str | None,
) -> Request:
    query: Query = {
        "labelSelector": selector_text(labels),
        "fieldSelector": selector_text(fields),
        "limit": limit,
        "continue": token,
        # The server refuses a resource version beside a continue token, which carries its own.
        "resourceVersion": None if token else resource_version,
    }
    return Request("GET", with_query(resource.path(namespace), query), f"list {_place(resource, namespace)}")


def create(resource: Resource[Any], body: JSON, namespace: str | None, query: Query) -> Request:
    key = _key_of(body, namespace)
    path = with_query(resource.path(key.namespace), query)
    return Request("POST", path, f"create {resource} {key}", msgspec.json.encode(body))


def replace(resource: Resource[Any], body: JSON, subresource: str | None, query: Query) -> Request:
    key = _key_of(body, None)
    path = with_query(resource.path(*key, subresource), query)
    return Request("PUT", path, f"replace {_part(resource, subresource)} {key}", msgspec.json.encode(body))


def merge_patch(resource: Resource[Any], key: ObjectKey, patch: JSON, subresource: str | None, query: Query) -> Request:
    return _patch(resource, key, patch, subresource, query, _MERGE_PATCH)


def json_patch(
    resource: Resource[Any], key: ObjectKey, operations: Sequence[JSON], subresource: str | None, query: Query
) -> Request:
    return _patch(resource, key, operations, subresource, query, _JSON_PATCH)


def apply(resource: Resource[Any], body: JSON, subresource: str | None, query: Query) -> Request:
    whole = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
    return _patch(resource, _key_of(body, None), whole, subresource, query, _APPLY)


def _patch(
    resource: Resource[Any], key: ObjectKey, patch: Any, subresource: str | None, query: Query, content_type: str
) -> Request:
    path = with_query(resource.path(*key, subresource), query)
    verb = "apply" if content_type == _APPLY else "patch"
    about = f"{verb} {_part(resource, subresource)} {key}"
    return Request("PATCH", path, about, msgspec.json.encode(patch), content_type)


def delete(resource: Resource[Any], key: ObjectKey, options: JSON) -> Request:
    return Request("DELETE", resource.path(*key), f"delete {resource} {key}", msgspec.json.encode(options))


def delete_collection(
    resource: Resource[Any],
    namespace: str | None,
    labels: Selector | None,
    fields: Selector | None,
    options: JSON,
) -> Request:
    query: Query = {"labelSelector": selector_text(labels), "fieldSelector": selector_text(fields)}
    path = with_query(resource.path(namespace), query)
    return Request("DELETE", path, f"delete all {_place(resource, namespace)}", msgspec.json.encode(options))


def subresource(resource: Resource[Any], key: ObjectKey, name: str, body: Any, query: Query) -> Request:
    """A GET of a subresource, or a POST to it where there is a body."""
    path = with_query(resource.path(*key, name), query)
    if body is None:
        return Request("GET", path, f"get {_part(resource, name)} {key}")
    return Request("POST", path, f"create {_part(resource, name)} {key}", msgspec.json.encode(body))


def write_query(dry_run: bool, field_manager: str | None) -> dict[str, str | int | bool | None]:
    """What every write may carry."""
    return {"dryRun": "All" if dry_run else None, "fieldManager": field_manager}


def delete_options(
    uid: str | None = None,
    resource_version: str | None = None,
    propagation: Propagation | None = None,
    grace_seconds: int | None = None,
) -> JSON:
    """The body of a delete. Never empty, so that every write has a body to check the fence before."""
    options: JSON = {"apiVersion": "v1", "kind": "DeleteOptions"}
    preconditions = {"uid": uid, "resourceVersion": resource_version}
    if any(preconditions.values()):
        options["preconditions"] = {name: value for name, value in preconditions.items() if value}
    if propagation:
        options["propagationPolicy"] = propagation
    if grace_seconds is not None:
        options["gracePeriodSeconds"] = grace_seconds
    return options


def with_query(path: str, query: Query) -> str:
    """The path with its parameters, those left out that have no value."""
    pairs = [(name, _text(value)) for name, value in query.items() if value is not None and value != ""]
    return f"{path}?{urlencode(pairs, quote_via=quote)}" if pairs else path


def selector_text(selector: Selector | None) -> str | None:
    if selector is None or isinstance(selector, str):
        return selector
    return ",".join(f"{name}={value}" for name, value in selector.items())


def _text(value: str | int | bool | None) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _key_of(body: JSON, namespace: str | None) -> ObjectKey:
    metadata = body.get("metadata", {})
    name = metadata.get("name") or metadata.get("generateName", "")
    return ObjectKey(namespace or metadata.get("namespace", ""), name)


def _part(resource: Resource[Any], subresource: str | None) -> str:
    return f"{resource}/{subresource}" if subresource else str(resource)


def _place(resource: Resource[Any], namespace: str | None) -> str:
    return f"{resource} in {namespace}" if namespace else f"{resource} in all namespaces"
