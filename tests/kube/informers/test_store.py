"""What an informer keeps of the objects it reads."""

from __future__ import annotations

import sys

import msgspec

from raykeeper.api.meta import Object, ObjectKey, ObjectMeta, Resource
from raykeeper.kube.http.decoding import decode_page
from raykeeper.kube.informers.cache import Cache
from raykeeper.kube.informers.informer import Store

PODS: Resource[Object] = Resource("", "v1", "pods", "Pod", Object)
KEY = ObjectKey("n", "a")


def a_pod(uid: str = "u1", version: str = "1", spec: bytes = b"{}") -> Object:
    return Object(ObjectMeta("a", "n", uid=uid, resource_version=version), spec=msgspec.Raw(spec))


def uid_of(item: Object | None) -> str | None:
    return None if item is None else item.metadata.uid


class Heard:
    """A store and what its handler was told, as (old uid, new uid)."""

    def __init__(self) -> None:
        self.cache: Cache[Object] = Cache()
        self.store = Store(self.cache, Object)
        self.changes: list[tuple[str | None, str | None]] = []
        self.store.handlers.append(lambda old, new: self.changes.append((uid_of(old), uid_of(new))))


def test_a_cached_object_does_not_keep_the_page_it_came_in() -> None:
    pod = {"metadata": {"name": "a", "namespace": "n", "managedFields": ["x" * 1000]}, "spec": {"nodeName": "b"}}
    body = msgspec.json.encode({"metadata": {"resourceVersion": "1"}, "items": [pod]})
    unheld = sys.getrefcount(body)
    heard = Heard()
    page = decode_page(PODS, body)
    assert sys.getrefcount(body) > unheld, "Raw fields are views of the page; if not, there is nothing to copy"
    heard.store.put(page.items[0])
    del page
    assert sys.getrefcount(body) == unheld
    cached = heard.cache.get(KEY)
    assert cached is not None
    assert msgspec.json.decode(cached.spec) == {"nodeName": "b"}


def test_an_object_seen_again_in_the_same_version_changes_nothing() -> None:
    heard = Heard()
    heard.store.put(a_pod())
    heard.store.put(a_pod())
    assert heard.changes == [(None, "u1")]


def test_an_object_made_again_under_the_same_name_is_a_removal_and_an_addition() -> None:
    heard = Heard()
    heard.store.put(a_pod(uid="u1", version="1"))
    heard.store.put(a_pod(uid="u2", version="9"))
    assert heard.changes == [(None, "u1"), ("u1", None), (None, "u2")]


def test_removing_what_is_not_known_tells_nobody() -> None:
    heard = Heard()
    heard.store.remove(KEY)
    assert heard.changes == []
