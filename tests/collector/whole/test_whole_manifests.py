"""Sidecars as users have written them start the whole collector, with nothing changed but the image.

A mount namespace gives what a pod would: a `/tmp/ray` of its own, and the program under the name `collector`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from bed.cache import cache_folder
from bed.locks import file_lock
from bed.minio import Minio
from bed.waiting import wait_until
from collector.ray_folders import NODE_A, SESSION, a_session, written
from support.collector_processes import CollectorProcess, ended
from support.collector_stores import objects_in
from support.event_scene import RayClient, stored_events
from support.ray_event_batches import EventMaker, body_of, line_of

FIRST_SAMPLE = """
name: collector
image: collector:v0.1.0
command:
  - collector
  - --role=Head
  - --runtime-class-name=s3
  - --ray-cluster-name=raycluster-historyserver
  - --ray-root-dir=log
  - --events-port=8084
env:
  - {name: S3DISABLE_SSL, value: "true"}
  - {name: AWS_S3ID, value: "<key>"}
  - {name: AWS_S3SECRET, value: "<secret>"}
  - {name: AWS_S3TOKEN, value: ""}
  - {name: S3_BUCKET, value: "<bucket>"}
  - {name: S3_ENDPOINT, value: "<endpoint>"}
  - {name: S3_REGION, value: test}
  - {name: S3FORCE_PATH_STYLE, value: "true"}
"""
"""KubeRay's first sample: the sidecar of a head with MinIO. Its worker differs in the role alone."""

ALIBABA = """
name: collector
command:
  - collector
  - --role=Worker
  - --runtime-class-name=aliyunoss
  - --ray-cluster-name=wukun-ray240-x7k2p
  - --ray-cluster-id=default
  - --ray-root-dir=history
  - --events-port=8084
env:
  - {name: OSS_BUCKET, value: ray-history}
  - {name: OSS_ENDPOINT, value: "127.0.0.1:9"}
  - {name: OSS_REGION, value: cn-hangzhou}
  - {name: ALIBABA_CLOUD_ROLE_ARN, value: "acs:ram::1234567890:role/ray-historyserver"}
  - {name: ALIBABA_CLOUD_OIDC_PROVIDER_ARN, value: "acs:ram::1234567890:oidc-provider/ack-rrsa"}
  - {name: ALIBABA_CLOUD_OIDC_TOKEN_FILE, value: /var/run/secrets/ack.alibabacloud.com/rrsa-tokens/token}
"""
"""Alibaba's component, whose endpoint does not answer here: it must start all the same."""

HOOK_LINE = f'Sun Nov 15 20:10:31 UTC 2026 raylet started: "{NODE_A}" => {NODE_A}\n'
"""What the `postStart` hook of Alibaba's page appends to `/tmp/ray/init.log`."""

pytestmark = [
    pytest.mark.bed,
    pytest.mark.skipif(os.geteuid() != 0, reason="a /tmp/ray of its own needs a mount namespace, so root"),
]


@pytest.fixture(autouse=True)
def usual_ports() -> Iterator[None]:
    """Manifests name the port 8084, and the metrics' default is 8085: only one test at a time has them."""
    with file_lock(cache_folder() / "collector-ports.lock"):
        yield


def a_sidecar(manifest: str, folder: Path, **values: str) -> CollectorProcess:
    """The container as the kubelet would start it, with its volume at `/tmp/ray`."""
    for name, value in values.items():
        manifest = manifest.replace(f"<{name}>", value)
    container: dict[str, Any] = yaml.safe_load(manifest)
    program, *flags = container["command"]
    script = 'mkdir -p /tmp/ray && mount --bind "$0" /tmp/ray && exec "$@"'
    enter = ("unshare", "--mount", "--propagation=private", "sh", "-c", script, str(folder / "ray"))
    environment = {variable["name"]: variable["value"] for variable in container["env"]}
    pod = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "HOSTNAME": "pod-7x2kq"}
    return CollectorProcess(
        folder / "collector.log", flags, environment | pod, (*enter, str(Path(sys.executable).with_name(program)))
    )


async def post_events(collector: CollectorProcess) -> list[bytes]:
    events = EventMaker(session=SESSION, node=NODE_A).events(100)
    assert collector.wait_for("listening for Ray")["port"] == 8084
    async with RayClient(8084) as ray:
        assert await ray.post(body_of(events)) == 200
    return [line_of(event) for event in events]


@pytest.mark.parametrize("role", ["Head", "Worker"])
async def test_the_sidecar_of_kuberays_first_sample_collects(
    tmp_path: Path, minio: Minio, bucket: str, role: str
) -> None:
    session = a_session(tmp_path / "ray")
    written(tmp_path / "ray" / "raylet_node_id", f"{NODE_A}\n".encode())
    written(session / "logs" / "worker-1-01000000-9.out", b"hello\n")
    keys = {"key": minio.access_key, "secret": minio.secret_key}
    endpoint = minio.endpoint.removeprefix("http://")
    manifest = FIRST_SAMPLE.replace("--role=Head", f"--role={role}")
    collector = a_sidecar(manifest, tmp_path, bucket=bucket, endpoint=endpoint, **keys)
    with ended(collector):
        collector.start()
        kept = await post_events(collector)
        await asyncio.to_thread(collector.wait_for, "node found")
        assert collector.ask("/healthz") == "ok\n"
        assert await asyncio.to_thread(collector.end) == 0
    objects = await objects_in(minio, bucket, root="log")
    assert stored_events(objects, SESSION, NODE_A) == kept
    place = f"v1/data/default/raycluster-historyserver/{SESSION}"
    assert f"{place}/nodes/{NODE_A}/end.json" in objects
    assert (f"{place}/session.json" in objects) == (role == "Head")
    assert any(key.endswith(".pack") for key in objects)


async def test_the_sidecar_of_alibabas_component_takes_events_and_finds_its_node(tmp_path: Path) -> None:
    a_session(tmp_path / "ray")
    written(tmp_path / "ray" / "init.log", f"Sun Nov 15 20:10:30 UTC 2026 raylet not start\n{HOOK_LINE}".encode())
    collector = a_sidecar(ALIBABA, tmp_path)
    with ended(collector):
        collector.start()
        await post_events(collector)
        assert collector.wait_for("node found")["node_id"] == NODE_A
        assert collector.wait_for("collecting")["store"].startswith("oss://ray-history/history")
        await asyncio.to_thread(
            wait_until, "that it fails is counted", lambda: "put_errors_total{" in collector.ask("/metrics"), 60.0
        )
        assert collector.ask("/healthz") == "ok\n"
