"""Namespaces of tests go, whatever finalizers an operator left in them."""

from __future__ import annotations

from bed.control_plane import ControlPlane
from bed.fixtures import make_namespace, remove_namespace
from bed.waiting import wait_until
from support.rayjob_scene import a_rayjob

NAME = "left-behind"


def test_a_namespace_goes_though_no_operator_takes_the_finalizer_off(ray_crds: ControlPlane) -> None:
    make_namespace(ray_crds, NAME)
    job = a_rayjob() | {"metadata": {"name": "counter", "finalizers": ["ray.io/rayjob-finalizer"]}}
    ray_crds.admin.post(f"/apis/ray.io/v1/namespaces/{NAME}/rayjobs", job)
    remove_namespace(ray_crds, NAME)
    wait_until("it is gone", lambda: not ray_crds.admin.answers(f"/api/v1/namespaces/{NAME}"))
