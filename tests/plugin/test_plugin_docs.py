"""The page about `kubectl raykeeper` is true."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import typer

from bed.control_plane import ControlPlane
from raykeeper.api.meta import ObjectKey
from raykeeper.cli.kubectl import app
from raykeeper.client.diagnosis import diagnose
from raykeeper.client.kinds import CLUSTERS
from raykeeper.client.observing import observe
from raykeeper.plugin.commands import ExitCode
from raykeeper.plugin.screen import diagnosis_lines
from raykeeper.plugin.support import LOG_LINES, PODS_LIMIT, TOTAL_BYTES
from support.kube_clients import connected
from support.sick_objects import put_sick_cluster

PAGE = Path(__file__).parents[2] / "docs" / "kubectl-raykeeper.md"


def test_every_command_exit_code_and_bound_is_on_the_page() -> None:
    text = PAGE.read_text()
    group = typer.main.get_command(app)
    for name in getattr(group, "commands", {}):
        assert f"| `{name}` |" in text
    for code in ExitCode:
        assert f"\n| {code.value} |" in text
    for bound in (f"{PODS_LIMIT}, the head", f"last {LOG_LINES:,} lines", f"{TOTAL_BYTES >> 20} MB"):
        assert bound in text


async def test_the_screen_on_the_page_is_what_is_shown(ray_crds: ControlPlane, namespace: str) -> None:
    put_sick_cluster(ray_crds, namespace)
    async with connected(ray_crds.admin_kubeconfig) as kube:
        seen = diagnose(await observe(kube, CLUSTERS, ObjectKey(namespace, "demo")))
    shown = "\n".join(text for text, _ in diagnosis_lines(seen, datetime.now(UTC) + timedelta(hours=3)))
    expected = PAGE.read_text().partition("$ kubectl raykeeper status raycluster/demo\n")[2].partition("\n```")[0]
    # The Event's age depends on when it was written; everything else is as on the page.
    assert shown.replace(namespace, "docs").rpartition("\n")[0] == expected.rpartition("\n")[0]
