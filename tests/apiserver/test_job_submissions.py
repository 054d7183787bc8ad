"""Jobs that are given to a real Ray head, beside what KubeRay's API server answered about the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from bed.control_plane import ControlPlane
from support.answer_differences import Review, differences, read_reviewed
from support.api_access import call
from support.api_processes import ApiProcess, api_server_on
from support.api_scenarios import PROTOCOLS, Protocol
from support.head_scenarios import ANSWERS, SCENARIO, ReachableHead, a_reachable_head

pytestmark = pytest.mark.timeout(600)
REVIEWED = Path(__file__).parent / "reviewed_head_differences.yaml"
SUBMIT = "proto.RayJobSubmissionService.SubmitRayJob"


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReachableHead]:
    with a_reachable_head(tmp_path_factory.mktemp("ray")) as head:
        yield head


@pytest.fixture(scope="module")
def server(ray_crds: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    folder = tmp_path_factory.mktemp("apiserver")
    with api_server_on(ray_crds, folder, "--auth=none", "--use-kubernetes-proxy") as process:
        yield process


@pytest.fixture(scope="module")
def review(ray_crds: ControlPlane, control_plane: ControlPlane, server: ApiProcess, head: ReachableHead) -> Review:
    found = Review(read_reviewed(REVIEWED))
    for protocol in PROTOCOLS:
        theirs: dict[str, Any] = yaml.safe_load((ANSWERS / f"{SCENARIO}.{protocol}.yaml").read_text())
        ours = head.tell(ray_crds, server.ports, protocol, "ours")
        assert theirs.keys() == ours.keys()
        for step, answer in theirs.items():
            found.look_at(differences(f"{protocol}/{step}", answer, ours[step]))
    return found


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_answers_are_kuberays_but_for_reviewed_differences(protocol: Protocol, review: Review) -> None:
    assert [str(one) for one in review.unexplained if one.request.startswith(protocol)] == []


def test_no_reviewed_difference_is_out_of_date(review: Review) -> None:
    assert review.unused() == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_resources_of_an_entrypoint_end_no_process(protocol: Protocol, server: ApiProcess, review: Review) -> None:
    """KubeRay's server ends with them: it writes into a map that it never made."""
    resources = {"entrypoint": "true", "entrypointResources": {"special": "many"}}
    request = {"namespace": "default", "clustername": "missing", "jobsubmission": resources}
    assert call(server.ports, protocol, SUBMIT, request, {}).code == "NOT_FOUND"
    assert server.process.poll() is None
