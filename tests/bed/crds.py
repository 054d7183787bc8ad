"""The CRDs of `ray.io` in a control plane of the bed."""

from __future__ import annotations

import pytest

from bed.control_plane import ControlPlane
from bed.golang import module_folder
from bed.locks import file_lock
from raykeeper.api.crd.files import CRD_FOLDER, crd_files


def install_ray_crds(plane: ControlPlane) -> None:
    """Install them and return once all kinds are served; a plane that serves them is left as it is."""
    collections = [f"/apis/ray.io/v1/{plural}" for plural in crd_files()]
    if not all(plane.admin.answers(path) for path in collections):
        plane.kubectl("apply", "--server-side", f"--filename={CRD_FOLDER}")
    for path in collections:
        plane.wait_for(path)


_PROMETHEUS_OPERATOR = ("github.com/prometheus-operator/prometheus-operator", "v0.85.0")
_MONITORING = ("servicemonitors", "podmonitors", "prometheusrules")


def install_monitoring_crds(plane: ControlPlane) -> None:
    """Install the kinds of the Prometheus operator that our charts make, out of its Go module."""
    folder = module_folder(*_PROMETHEUS_OPERATOR) / "example" / "prometheus-operator-crd"
    files = [f"--filename={folder / f'monitoring.coreos.com_{kind}.yaml'}" for kind in _MONITORING]
    plane.kubectl("apply", "--server-side", *files)
    for kind in _MONITORING:
        plane.wait_for(f"/apis/monitoring.coreos.com/v1/{kind}")


_CERT_MANAGER = ("github.com/cert-manager/cert-manager", "v1.21.2")
_CERTIFICATES = ("certificates", "issuers")


def install_cert_manager_crds(plane: ControlPlane) -> None:
    """Install the kinds of cert-manager that users add to our charts, out of its Go module."""
    folder = module_folder(*_CERT_MANAGER) / "deploy" / "crds"
    files = [f"--filename={folder / f'cert-manager.io_{kind}.yaml'}" for kind in _CERTIFICATES]
    plane.kubectl("apply", "--server-side", *files)
    for kind in _CERTIFICATES:
        plane.wait_for(f"/apis/cert-manager.io/v1/{kind}")


@pytest.fixture(scope="session")
def ray_crds(control_plane: ControlPlane) -> ControlPlane:
    """The control plane of this test run, which knows RayClusters and the like; safe to use in every worker."""
    with file_lock(control_plane.folder / "ray-crds.lock"):
        install_ray_crds(control_plane)
    return control_plane
