"""The examples of docs/client.md run as they stand."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from bed.control_plane import ControlPlane
from bed.daemons import LOOPBACK
from raykeeper.client import check_manifest
from support.api_processes import api_server_on
from support.operating import operating

EXAMPLES = re.findall(r"```python\n(.*?)```", (Path(__file__).parents[2] / "docs" / "client.md").read_text(), re.S)


def run(text: str) -> dict[str, object]:
    names: dict[str, object] = {}
    exec(compile(text, "docs/client.md", "exec"), names)
    return names


def test_the_manifests_of_the_page_are_valid() -> None:
    names = run(EXAMPLES[1])
    for name in ("job", "nightly", "service"):
        manifest = names[name]
        assert isinstance(manifest, dict)
        check_manifest(manifest)


@pytest.mark.usefixtures("kwok")
async def test_the_first_example_runs(
    ray_crds: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(ray_crds.admin_kubeconfig))
    async with operating(ray_crds.admin_kubeconfig, namespace):
        await asyncio.to_thread(run, EXAMPLES[0].replace('"default"', f'"{namespace}"'))
    assert f"RayCluster {namespace}/first is" in capsys.readouterr().out


@pytest.mark.usefixtures("kwok")
async def test_the_example_for_kuberays_client_of_v1_runs(
    ray_crds: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    with api_server_on(ray_crds, tmp_path, "--auth=none") as server:
        text = EXAMPLES[2].replace('"default"', f'"{namespace}"')
        text = text.replace("localhost:31888", f"{LOOPBACK}:{server.ports.http}")
        async with operating(ray_crds.admin_kubeconfig, namespace):
            names = await asyncio.to_thread(run, text)
    assert (names["status"], names["error"]) == (200, None)
