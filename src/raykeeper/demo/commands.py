"""The command lines and variables of the programs in a demo. Pure.

Everything listens on the loopback, at ports that were free a moment ago.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from raykeeper.demo.asking import LOOPBACK
from raykeeper.demo.rayinstall import RayInstall

CLUSTER = "demo"
NAMESPACE = "local"
"""What the collector takes outside Kubernetes; said, because a demo may run inside a pod."""

_RAYKEEPER = (sys.executable, "-m", "raykeeper.cli.main")
_NEAR = f"{LOOPBACK},localhost"


@dataclass(frozen=True)
class Ports:
    """One for each listener."""

    history: int
    events: int
    dashboard: int
    gcs: int
    agent: int
    metrics: int
    client: int


@dataclass(frozen=True)
class Places:
    """The folders of a run."""

    store: Path
    """All that is left afterwards."""
    run: Path
    """Logs of the programs, Ray's session, copies of objects: gone afterwards."""

    @property
    def ray(self) -> Path:
        """Ray's temporary folder. Short, since the paths of its sockets may have 107 characters."""
        return self.run / "ray"

    @property
    def store_url(self) -> str:
        return self.store.as_uri()


def history_command(places: Places, ports: Ports, ray: RayInstall) -> list[str]:
    return [
        *_RAYKEEPER,
        "history",
        f"--store={places.store_url}",
        f"--bind={LOOPBACK}:{ports.history}",
        f"--dashboard-dir={ray.dashboard}",
        f"--cache-dir={places.run / 'cache'}",
    ]


def collector_command(places: Places, ports: Ports) -> list[str]:
    """A collector in a hurry: a demo is over before the intervals of a cluster have passed."""
    return [
        *_RAYKEEPER,
        "collector",
        "--role=head",
        f"--ray-cluster-name={CLUSTER}",
        f"--ray-cluster-namespace={NAMESPACE}",
        f"--store-url={places.store_url}",
        f"--ray-tmp-root={places.ray}",
        f"--events-bind={LOOPBACK}",
        f"--events-port={ports.events}",
        f"--ray-dashboard-address=http://{LOOPBACK}:{ports.dashboard}",
        "--metrics-addr=0",
        "--poll-interval=2s",
        "--seal-age=1s",
        "--idle-seal-age=2s",
        "--user-log-interval=1s",
    ]


def ray_command(places: Places, ports: Ports, ray: RayInstall, *, is_small: bool) -> list[str]:
    """A head on the loopback. A small one has what the demo's own job needs on any machine."""
    size = ["--num-cpus=4", "--object-store-memory=100000000"] if is_small else []
    return [
        *(str(ray.python), str(ray.command), "start", "--head", "--block", "--disable-usage-stats"),
        *(f"--temp-dir={places.ray}", f"--node-ip-address={LOOPBACK}", f"--port={ports.gcs}"),
        *("--include-dashboard=true", f"--dashboard-host={LOOPBACK}", f"--dashboard-port={ports.dashboard}"),
        f"--dashboard-agent-listen-port={ports.agent}",
        f"--metrics-export-port={ports.metrics}",
        f"--ray-client-server-port={ports.client}",
        *("--min-worker-port=0", "--max-worker-port=0"),  # free ones, as two demos may run side by side
        *size,
    ]


def token_environment(token: str) -> dict[str, str]:
    """For Ray and whoever asks it: others on this machine must not hand in jobs, which run as the user.

    Said in any case, because a token in the user's home would turn this on as well.
    """
    return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token}


def ray_environment(ports: Ports, ray: RayInstall, environment: Mapping[str, str]) -> dict[str, str]:
    """Lets Ray tell the collector everything, and lets scripts find the Python that has Ray."""
    return {
        "PATH": f"{ray.python.parent}{os.pathsep}{environment.get('PATH', os.defpath)}",
        "RAY_enable_ray_event": "1",
        "RAY_enable_core_worker_ray_event_to_aggregator": "1",
        "RAY_DASHBOARD_AGGREGATOR_AGENT_EVENTS_EXPORT_ADDR": f"http://{LOOPBACK}:{ports.events}/v1/events",
        "RAY_DASHBOARD_AGGREGATOR_AGENT_EXPOSABLE_EVENT_TYPES": "ALL",
        # Without clusters Ray stays on the loopback, as it does on a Mac; else it looks for an address others reach.
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        # Ray gives its dashboard a minute, which is too little for a busy machine or the first start from a slow disk.
        "RAY_DASHBOARD_STARTUP_TIMEOUT_S": "240",
        # Nothing runs any more when Ray is told to end, so there is nothing to wait for.
        "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "1",
    }


def base_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """What every program gets: ours, without what would point them elsewhere, and no proxy for the loopback."""
    kept = {name: value for name, value in environment.items() if not _points_elsewhere(name)}
    near = ",".join(filter(None, [environment.get("no_proxy") or environment.get("NO_PROXY"), _NEAR]))
    return {**kept, "no_proxy": near, "NO_PROXY": near, "PYTHONUNBUFFERED": "1"}


def _points_elsewhere(name: str) -> bool:
    """Variables of a cluster, a store or an access mode that the user has for other purposes."""
    mine = ("RAYKEEPER_", "STORAGE_", "RAY_CLUSTER_", "RAY_COLLECTOR_", "RAY_AUTH_", "RAY_DASHBOARD_", "OWNER_")
    return name.startswith(mine) or name in ("RAY_ADDRESS", "RAY_API_SERVER_ADDRESS", "RAY_TMPDIR", "FQ_RAY_IP")
