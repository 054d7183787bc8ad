"""OpenShift as far as the operator knows it: an API server that serves Routes."""

from __future__ import annotations

from bed.control_plane import ControlPlane
from bed.rest import Json
from raykeeper.kube.resources import ROUTES

ROUTE_CRD: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "routes.route.openshift.io", "annotations": {"api-approved.kubernetes.io": "unapproved"}},
    "spec": {
        "group": ROUTES.group,
        "names": {"kind": ROUTES.kind, "plural": ROUTES.plural},
        "scope": "Namespaced",
        "versions": [
            {
                "name": ROUTES.version,
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
            }
        ],
    },
}


def install_routes(plane: ControlPlane) -> None:
    """Make an API server of the bed's look like OpenShift's; returns once Routes are served."""
    plane.admin.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", ROUTE_CRD)
    plane.wait_for(f"/apis/{ROUTES.group}/{ROUTES.version}/{ROUTES.plural}")
