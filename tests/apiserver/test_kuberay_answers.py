"""Every call, over both protocols, beside what KubeRay's own API server answers.

Its answers were recorded (`make interop` compares them with a live one); ours may differ in reviewed fields alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from bed.control_plane import ControlPlane
from bed.fixtures import make_namespace, remove_namespace
from support.answer_differences import Review, differences, read_reviewed
from support.api_processes import ApiProcess, api_server_on
from support.api_scenarios import ANSWERS, Protocol, Run, cases
from support.golden import files_without_test

REVIEWED = Path(__file__).parent / "reviewed_differences.yaml"
CORS = "--cors-allow-origin=https://example.com"
CASES = cases()


@pytest.fixture(scope="module")
def server(ray_crds: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    with api_server_on(ray_crds, tmp_path_factory.mktemp("apiserver"), "--auth=none", CORS) as process:
        yield process


@pytest.fixture(scope="module")
def review(ray_crds: ControlPlane, control_plane: ControlPlane, server: ApiProcess) -> Review:
    """All answers, looked through once."""
    found = Review(read_reviewed(REVIEWED))
    for scenario, protocol in CASES:
        theirs = recorded(scenario, protocol)
        ours = told(ray_crds, server, scenario, protocol)
        assert theirs.keys() == ours.keys()
        for step, answer in theirs.items():
            found.look_at(differences(f"{scenario}/{protocol}/{step}", answer, ours[step]))
    return found


def recorded(scenario: str, protocol: Protocol) -> dict[str, Any]:
    answers: dict[str, Any] = yaml.safe_load((ANSWERS / f"{scenario}.{protocol}.yaml").read_text())
    return answers


def told(plane: ControlPlane, server: ApiProcess, scenario: str, protocol: Protocol) -> dict[str, Any]:
    namespace = f"ours-{protocol}-{scenario.replace('_', '-')}"
    make_namespace(plane, namespace)
    try:
        return Run(plane, server.ports, protocol, namespace).tell(scenario)
    finally:
        remove_namespace(plane, namespace)


@pytest.mark.parametrize(("scenario", "protocol"), CASES)
def test_answers_are_kuberays_but_for_reviewed_differences(scenario: str, protocol: str, review: Review) -> None:
    prefix = f"{scenario}/{protocol}/"
    assert [str(one) for one in review.unexplained if one.request.startswith(prefix)] == []


def test_no_reviewed_difference_is_out_of_date(review: Review) -> None:
    assert review.unused() == []


def test_every_recorded_answer_is_compared() -> None:
    assert files_without_test(ANSWERS, [f"{scenario}.{protocol}" for scenario, protocol in CASES]) == []
