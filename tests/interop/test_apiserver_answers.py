"""KubeRay's own API server answers as was recorded; `--regenerate` records it anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bed.control_plane import ControlPlane
from bed.fixtures import make_namespace, remove_namespace
from bed.kuberay_apiserver import ServerPorts, kuberay_apiserver_on
from support.api_scenarios import ANSWERS, PROTOCOLS, Protocol, Run, cases
from support.golden import AssertGolden
from support.head_scenarios import ANSWERS as HEAD_ANSWERS
from support.head_scenarios import SCENARIO, a_reachable_head

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def server(ray_crds: ControlPlane) -> Iterator[ServerPorts]:
    with kuberay_apiserver_on(ray_crds, "-cors-allow-origin=https://example.com") as ports:
        yield ports


@pytest.mark.parametrize(("scenario", "protocol"), cases())
def test_kuberays_api_server_answers_as_recorded(
    scenario: str, protocol: Protocol, ray_crds: ControlPlane, server: ServerPorts, assert_golden: AssertGolden
) -> None:
    namespace = f"theirs-{protocol}-{scenario.replace('_', '-')}"
    make_namespace(ray_crds, namespace)
    try:
        answers = Run(ray_crds, server, protocol, namespace, attempts=20).tell(scenario)
    finally:
        remove_namespace(ray_crds, namespace)
    assert_golden(ANSWERS / f"{scenario}.{protocol}.yaml", answers)


@pytest.mark.timeout(600)
def test_kuberays_api_server_answers_about_a_real_head_as_recorded(
    ray_crds: ControlPlane, tmp_path: Path, assert_golden: AssertGolden
) -> None:
    with (
        a_reachable_head(tmp_path) as head,
        kuberay_apiserver_on(ray_crds, HTTP_PROXY=head.as_proxy) as ports,
    ):
        for protocol in PROTOCOLS:
            answers = head.tell(ray_crds, ports, protocol, "theirs")
            assert_golden(HEAD_ANSWERS / f"{SCENARIO}.{protocol}.yaml", answers)
