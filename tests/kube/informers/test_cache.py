"""A cache finds through its indexes exactly what a search through all objects would find."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from raykeeper.api.meta import Object, ObjectKey, ObjectMeta, OwnerReference
from raykeeper.kube.informers.cache import Cache, by_controller, by_label

NAMES = st.sampled_from(["a", "b", "c", "d"])
VALUES = st.sampled_from(["x", "y", None])


def pod(namespace: str, name: str, cluster: str | None = None, owner: str | None = None) -> Object:
    labels = {} if cluster is None else {"ray.io/cluster": cluster}
    owners = () if owner is None else (OwnerReference(kind="RayCluster", name="c", uid=owner, controller=True),)
    return Object(ObjectMeta(name=name, namespace=namespace, labels=labels, owner_references=owners))


def a_cache() -> Cache[Object]:
    return Cache({"cluster": by_label("ray.io/cluster"), "owner": by_controller})


@given(st.lists(st.tuples(st.booleans(), NAMES, NAMES, VALUES, VALUES)))
def test_indexes_always_agree_with_the_objects(
    steps: list[tuple[bool, str, str, str | None, str | None]],
) -> None:
    cache = a_cache()
    for is_put, namespace, name, cluster, owner in steps:
        if is_put:
            cache.put(pod(namespace, name, cluster, owner))
        else:
            cache.remove(ObjectKey(namespace, name))
    for value in ("x", "y"):
        assert {item.key for item in cache.find("owner", value)} == {
            item.key for item in cache if item.controller_uid == value
        }
        for namespace in "abcd":
            assert {item.key for item in cache.find("cluster", f"{namespace}/{value}")} == {
                item.key
                for item in cache
                if item.metadata.namespace == namespace and item.metadata.labels.get("ray.io/cluster") == value
            }


def test_put_and_remove_give_back_what_stood_there() -> None:
    cache, first, second = a_cache(), pod("n", "a", "x"), pod("n", "a", "y")
    assert cache.put(first) is None
    assert cache.put(second) is first
    assert cache.remove(ObjectKey("n", "a")) is second
    assert cache.remove(ObjectKey("n", "a")) is None
    assert len(cache) == 0


def test_keys_can_be_asked_for_one_namespace() -> None:
    cache = a_cache()
    for namespace, name in [("n", "a"), ("m", "a"), ("n", "b")]:
        cache.put(pod(namespace, name))
    assert cache.keys("n") == [ObjectKey("n", "a"), ObjectKey("n", "b")]
    assert len(cache.keys()) == 3


def test_an_owner_that_does_not_control_is_not_indexed() -> None:
    cache = a_cache()
    owner = OwnerReference(kind="RayCluster", name="c", uid="u", controller=False)
    cache.put(Object(ObjectMeta(name="a", namespace="n", owner_references=(owner,))))
    assert cache.find("owner", "u") == []
