"""Every kind of ours owns things in the same way."""

from __future__ import annotations

import pytest

from raykeeper.api.meta import ObjectKey, ObjectMeta
from raykeeper.api.raycluster import HeadGroupSpec, RayCluster, RayClusterSpec
from raykeeper.api.raycronjob import RayCronJob, RayCronJobSpec
from raykeeper.api.rayjob import RayJob, RayJobSpec
from raykeeper.api.rayservice import RayService, RayServiceSpec
from raykeeper.api.structs import RayObject
from raykeeper.kube.events.series import ObjectRef
from raykeeper.operator.shared.owner import Owner

META = ObjectMeta(name="a", namespace="ns", uid="u-1", labels={"team": "ml"}, annotations={"note": "x"})
SPEC = RayClusterSpec(HeadGroupSpec({}))
KINDS: list[tuple[str, RayObject]] = [
    ("RayCluster", RayCluster(META, SPEC)),
    ("RayJob", RayJob(META)),
    ("RayService", RayService(META, RayServiceSpec(SPEC))),
    ("RayCronJob", RayCronJob(META, RayCronJobSpec("@daily", RayJobSpec()))),
]


@pytest.mark.parametrize(("kind", "item"), KINDS, ids=[kind for kind, _ in KINDS])
def test_an_object_of_each_kind_is_an_owner(kind: str, item: RayObject) -> None:
    owner = Owner.of(item)
    assert (owner.kind, owner.key, owner.uid) == (kind, ObjectKey("ns", "a"), "u-1")
    assert (owner.labels, owner.annotations) == ({"team": "ml"}, {"note": "x"})
    assert owner.reference() == {
        "apiVersion": "ray.io/v1",
        "kind": kind,
        "name": "a",
        "uid": "u-1",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    assert owner.ref() == ObjectRef("ray.io/v1", kind, "ns", "a", "u-1")
    assert str(owner) == f"{kind} ns/a"
