"""The CRDs of the Gateway API in a control plane, out of its Go module. Whoever carries traffic is not among them."""

from __future__ import annotations

from typing import Final

import pytest

from bed.control_plane import ControlPlane
from bed.golang import module_folder
from bed.locks import file_lock

MODULE: Final = "sigs.k8s.io/gateway-api"
VERSION: Final = "v1.4.1"
"""What KubeRay 1.7 is compiled with."""
GROUP: Final = "gateway.networking.k8s.io"
KINDS: Final = {
    "gatewayclasses": "v1",
    "gateways": "v1",
    "httproutes": "v1",
    "grpcroutes": "v1",
    "referencegrants": "v1beta1",
    "backendtlspolicies": "v1",
}
"""We use the first three; whoever carries traffic does not start without the others."""


def install_gateway_crds(plane: ControlPlane) -> None:
    """Install them and return once all kinds are served; a plane that serves them is left as it is."""
    collections = {kind: f"/apis/{GROUP}/{version}/{kind}" for kind, version in KINDS.items()}
    missing = [kind for kind, path in collections.items() if not plane.admin.answers(path)]
    if missing:
        folder = module_folder(MODULE, VERSION) / "config/crd/standard"
        files = [f"--filename={folder / f'{GROUP}_{kind}.yaml'}" for kind in missing]
        plane.kubectl("apply", "--server-side", *files)
    for path in collections.values():
        plane.wait_for(path)


@pytest.fixture(scope="session")
def gateway_crds(control_plane: ControlPlane) -> ControlPlane:
    """The control plane of this test run, which knows Gateways and HTTPRoutes; safe to use in every worker."""
    with file_lock(control_plane.folder / "gateway-crds.lock"):
        install_gateway_crds(control_plane)
    return control_plane
