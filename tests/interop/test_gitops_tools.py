"""Argo CD's own Lua runtime and Flux's own evaluator judge Ray objects as the examples mean it."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from bed.binaries import binary
from support.gitops_health import CASES, EXPRESSIONS, Case, Json, health_check

pytestmark = pytest.mark.interop


def judged(questions: list[Json]) -> list[Any]:
    """What the tools say to each question."""
    lines = "\n".join(json.dumps(question) for question in questions)
    done = subprocess.run([binary("gitops-health")], input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_argo_cd_says_what_the_status_means() -> None:
    told = judged([{"lua": health_check(case.kind), "object": case.manifest} for case in CASES])
    assert [answer["status"] for answer in told] == [case.argo for case in CASES]


def test_flux_says_what_the_status_means() -> None:
    told = judged([{"expressions": EXPRESSIONS[case.kind], "object": case.manifest} for case in CASES])
    assert [answer["status"] for answer in told] == [case.flux for case in CASES]


def test_flux_understands_our_objects_also_without_expressions() -> None:
    """By the conditions that all controllers of its kind write; for a RayCluster, what should be is then there."""
    cases: list[Case] = [
        case for case in CASES if case.status and case.argo == "Healthy" and "Ready" in str(case.status)
    ]
    told = judged([{"object": case.manifest} for case in cases if not case.spec])
    assert told
    assert {answer["status"] for answer in told} == {"Current"}
