"""Whole pods, compared with files that a reviewer can read, and shown to a real API server."""

from __future__ import annotations

from pathlib import Path

import pytest

from bed.control_plane import ControlPlane
from bed.rest import Refused
from rayclusters.golden_pods import GOLDEN_PODS
from support.golden import AssertGolden, files_without_test

FOLDER = Path(__file__).parent.parent / "golden" / "pods"


@pytest.mark.parametrize("name", GOLDEN_PODS)
def test_the_pod_is(name: str, assert_golden: AssertGolden) -> None:
    assert_golden(FOLDER / f"{name}.yaml", GOLDEN_PODS[name])


def test_every_golden_pod_is_still_made() -> None:
    assert files_without_test(FOLDER, GOLDEN_PODS) == []


@pytest.mark.parametrize("name", GOLDEN_PODS)
def test_a_real_api_server_accepts_the_pod(name: str, control_plane: ControlPlane, namespace: str) -> None:
    pod = GOLDEN_PODS[name]
    account = pod["spec"].get("serviceAccountName")
    if account:
        control_plane.admin.post(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": account}})
    moved = pod | {"metadata": pod["metadata"] | {"namespace": namespace}}
    strictly = "dryRun=All&fieldValidation=Strict"
    try:
        answer = control_plane.admin.post(f"/api/v1/namespaces/{namespace}/pods?{strictly}", moved)
    except Refused as refusal:
        pytest.fail(str(refusal), pytrace=False)
    assert answer["metadata"]["name"] == pod["metadata"]["name"]
