"""The CRDs can be installed by every way people use, first and again."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from bed.control_plane import ControlPlane
from raykeeper.api.crd.files import CRD_FOLDER
from raykeeper.api.crd.kinds import KINDS
from raykeeper.cli.app import app


@pytest.fixture(scope="module")
def plane(own_control_plane: ControlPlane) -> ControlPlane:
    """A control plane without the CRDs, for this module's tests in their order."""
    return own_control_plane


def outcomes(output: str) -> list[str]:
    return [line.rpartition(" ")[2] for line in output.splitlines()]


def test_kubectl_apply_creates_them_and_finds_nothing_to_do_the_second_time(plane: ControlPlane) -> None:
    assert outcomes(plane.kubectl("apply", "-f", str(CRD_FOLDER))) == ["created"] * 4
    assert outcomes(plane.kubectl("apply", "-f", str(CRD_FOLDER))) == ["unchanged"] * 4
    plane.kubectl("wait", "--for=condition=Established", "--timeout=30s", "crd", *(kind.crd_name for kind in KINDS))


def test_what_the_command_prints_is_the_same(plane: ControlPlane) -> None:
    for format_ in ("yaml", "json"):
        printed = CliRunner().invoke(app, ["crds", "--format", format_]).output
        assert outcomes(plane.kubectl("apply", "-f", "-", stdin=printed)) == ["unchanged"] * 4


def test_server_side_apply_takes_over_and_back_without_changing_anything(plane: ControlPlane) -> None:
    largest = str(CRD_FOLDER / "ray.io_rayjobs.yaml")  # one is enough: each step costs the server seconds
    plane.kubectl("apply", "--server-side", "-f", largest)
    plane.kubectl("apply", "-f", largest)
    crd = plane.admin.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/rayjobs.ray.io")
    assert crd["metadata"]["generation"] == 1


def test_the_server_finds_nothing_to_complain_about(plane: ControlPlane) -> None:
    for kind in KINDS:
        crd = plane.admin.get(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{kind.crd_name}")
        conditions = {condition["type"]: condition["status"] for condition in crd["status"]["conditions"]}
        assert conditions == {"NamesAccepted": "True", "Established": "True"}
        assert crd["status"]["storedVersions"] == ["v1"]
