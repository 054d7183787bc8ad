"""`support`: one archive with all that somebody needs who helps, and no secret in it.

Secrets are never read. Everything else is masked by the rules of docs/secrets.md, values of variables as a whole.
"""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from raykeeper.api.meta import JSON, ObjectKey, Resource
from raykeeper.client.diagnosis import Observed, diagnose
from raykeeper.client.history import NoHistory
from raykeeper.client.kinds import RAY_KINDS
from raykeeper.client.observing import EVENTS, PODS, observe
from raykeeper.errors import Misconfigured, RaykeeperError
from raykeeper.masking import MASK, masked_lines, masked_value
from raykeeper.plugin.commands import ExitCode, NothingKnown, Scene, read_report_of, scene
from raykeeper.plugin.screen import diagnosis_lines, report_lines
from raykeeper.plugin.subjects import Place, Subject

PODS_LIMIT = 50
LOG_LINES = 5_000
LOG_BYTES = 1 << 20
"""Of one container."""
TOTAL_BYTES = 100 << 20
"""Of everything, before compression; what comes after is left out and named."""
EVENTS_LIMIT = 1_000
OPERATOR_LABELS = "app.kubernetes.io/name in (kuberay-operator,raykeeper-operator,raykeeper)"
SERVICES: Resource[JSON] = Resource("", "v1", "services", "Service", dict)
NODES: Resource[JSON] = Resource("", "v1", "nodes", "Node", dict, namespaced=False)
_OWN_VARIABLES = frozenset(
    {
        *("RAY_IP", "FQ_RAY_IP", "RAY_PORT", "RAY_ADDRESS", "RAY_CLUSTER_NAME", "RAY_NODE_TYPE_NAME"),
        *("RAY_CLOUD_INSTANCE_ID", "KUBERAY_GEN_RAY_START_CMD", "RAY_USAGE_STATS_KUBERAY_IN_USE"),
        *("RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE", "REDIS_NAMESPACE", "RAY_ENABLE_ZERO_COPY_TORCH_TENSORS"),
    }
)
"""Set by operators, and telling; those of users are masked whatever they are called."""
_YAML_TEXTS = ("runtimeEnvYAML", "serveConfigV2")
_DROPPED_ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"

T = TypeVar("T")


class Archive:
    """Files of a tar, each masked by whoever adds it, within a bound."""

    def __init__(self, folder: str, now: datetime) -> None:
        self._folder = folder
        self._now = int(now.timestamp())
        self._buffer = io.BytesIO()
        self._tar = tarfile.TarFile(fileobj=self._buffer, mode="w", format=tarfile.PAX_FORMAT)
        self._bytes = 0
        self.missing: list[str] = []

    def add(self, name: str, text: str) -> None:
        data = text.encode(errors="replace")
        if self._bytes + len(data) > TOTAL_BYTES:
            self.missing.append(f"{name}: left out, the archive has {TOTAL_BYTES >> 20} MB already")
            return
        self._bytes += len(data)
        info = tarfile.TarInfo(f"{self._folder}/{name}")
        info.size, info.mode, info.mtime = len(data), 0o600, self._now
        self._tar.addfile(info, io.BytesIO(data))

    def add_json(self, name: str, value: Any) -> None:
        self.add(name, json.dumps(value, indent=2, default=str) + "\n")

    def finished(self) -> bytes:
        self._tar.close()
        return gzip.compress(self._buffer.getvalue(), mtime=self._now)


def masked_object(item: JSON) -> JSON:
    """An object of Kubernetes without what could be secret. Pure."""
    found: JSON = masked_value(_without_variables(item))
    return found


def _without_variables(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: _member(name, part)
            for name, part in value.items()
            if name not in ("managedFields", _DROPPED_ANNOTATION)
        }
    if isinstance(value, list):
        return [_without_variables(item) for item in value]
    return value


def _member(name: str, part: Any) -> Any:
    if name == "env" and isinstance(part, list):
        return [_variable(item) for item in part]
    if name in _YAML_TEXTS and isinstance(part, str):
        return _masked_yaml(part)
    if name in ("data", "stringData", "binaryData") and isinstance(part, dict):
        return dict.fromkeys(part, MASK)
    return _without_variables(part)


def _variable(item: Any) -> Any:
    if not isinstance(item, dict) or not item.get("value") or item.get("name") in _OWN_VARIABLES:
        return item
    return {**item, "value": MASK}


def _masked_yaml(text: str) -> str:
    """YAML inside of a text, masked by its members; what cannot be read is masked as a whole."""
    import yaml

    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError:
        return MASK
    return text if found is None else str(yaml.safe_dump(masked_value(found), sort_keys=False))


def masked_log(data: bytes) -> str:
    """The end of a log, line by line without secrets. A line that was cut at the front is left out."""
    is_cut = len(data) > LOG_BYTES
    lines = data[-LOG_BYTES:].decode(errors="replace").split("\n")
    return "\n".join(masked_lines(lines[1:] if is_cut else lines))


async def support(
    place: Place, subject: Subject, target: Path | None, say: Callable[[str], object], now: datetime | None = None
) -> int:
    """Write the archive and say where it is. Raises Misconfigured where the file is there already."""
    now = now or datetime.now(UTC)
    async with scene(place, subject) as around:
        name = f"raykeeper-support-{around.key.namespace}-{around.key.name}-{now:%Y%m%dT%H%M%SZ}"
        path = target or Path(f"{name}.tar.gz")
        if path.exists():
            raise Misconfigured("--output", str(path), "there is such a file already")
        archive = Archive(name, now)
        seen = await observe(around.kube, around.resource, around.key)
        is_reported = await _add_report(around, archive)
        if seen.object is None and not is_reported:
            raise NothingKnown(f"neither Kubernetes nor a history knows {around.subject}")
        _add_observed(archive, seen, now)
        await _add_namespace(around, archive)
        await _add_logs(around, archive, seen)
        await _add_operator(around, archive)
    archive.missing += seen.unread
    archive.add("README.txt", _readme(around, archive, now))
    _write(path, archive.finished())
    say(f"{path}  ({path.stat().st_size / 1024:,.0f} KB)")
    say("Secrets are masked by rules that know names and shapes; look through it before you send it on.")
    return ExitCode.WELL


def _write(path: Path, data: bytes) -> None:
    try:
        path.touch(mode=0o600, exist_ok=False)
        path.write_bytes(data)
    except OSError as exc:
        raise Misconfigured("--output", str(path), f"it cannot be written: {exc.strerror}") from exc


def _readme(around: Scene, archive: Archive, now: datetime) -> str:
    missing = "".join(f"- {line}\n" for line in masked_lines(archive.missing)) or "- nothing\n"
    return (
        f"{around.subject}, {now:%Y-%m-%d %H:%M:%S} UTC, by kubectl raykeeper {version('raykeeper')}\n\n"
        "status.txt and status.json: how it is, in words. report.*: the history server's report.\n"
        "objects/: as Kubernetes has them. events.json: of its namespace. logs/: the end of each container's log.\n"
        "operator/: the operator's own log.\n\n"
        "Values of variables and everything that looks like a secret are masked.\n\n"
        f"What is not here:\n{missing}"
    )


async def _add_report(around: Scene, archive: Archive) -> bool:
    try:
        report = await read_report_of(around)
    except NoHistory as exc:
        archive.missing.append(f"report: {exc}")
        return False
    except RaykeeperError as exc:
        archive.missing.append(f"report: {exc}")
        return False
    archive.add_json("report.json", masked_value(report))
    archive.add("report.txt", "".join(f"{text}\n" for text, _ in report_lines(report)))
    return True


def _add_observed(archive: Archive, seen: Observed, now: datetime) -> None:
    diagnosis = diagnose(seen)
    archive.add("status.txt", "".join(f"{text}\n" for text, _ in diagnosis_lines(diagnosis, now)))
    archive.add_json("status.json", masked_value(asdict(diagnosis)))
    for item in _objects(seen):
        archive.add_json(f"objects/{item.get('kind', 'Pod')}-{item['metadata']['name']}.json", masked_object(item))


def _objects(seen: Observed) -> Iterator[JSON]:
    if seen.object is not None:
        yield seen.object
    yield from (cluster for cluster in seen.clusters if cluster is not seen.object)
    yield from ({"kind": "Pod", **pod} for pod in seen.pods[:PODS_LIMIT])


async def _add_namespace(around: Scene, archive: Archive) -> None:
    """What stands around it: other Ray objects by name and status, Services, Events, nodes."""
    namespace = around.key.namespace
    page = await _tried("events", partial(around.kube.page, EVENTS, namespace, limit=EVENTS_LIMIT), archive)
    if page is not None:
        archive.add_json("events.json", [masked_object(item) for item in page.items])
    services = await _tried(
        "services", partial(around.kube.list, SERVICES, namespace, labels="ray.io/cluster"), archive
    )
    archive.add_json("objects/services.json", [masked_object(item) for item in services or ()])
    for resource in RAY_KINDS:
        found = await _tried(resource.plural, partial(around.kube.list, resource, namespace), archive)
        names = [{"name": item["metadata"]["name"], "status": item.get("status", {})} for item in found or ()]
        archive.add_json(f"namespace/{resource.plural}.json", masked_value(names))
    nodes = await _tried("nodes", partial(around.kube.page, NODES, limit=PODS_LIMIT * 4), archive)
    if nodes is not None:
        archive.add_json("nodes.json", [_node(item) for item in nodes.items])


def _node(item: JSON) -> JSON:
    status = item.get("status", {})
    kept = {name: status.get(name) for name in ("allocatable", "capacity", "conditions", "nodeInfo")}
    kept_labels = item["metadata"].get("labels", {})
    return masked_object(
        {"name": item["metadata"]["name"], "labels": kept_labels, **kept, "taints": item.get("spec", {}).get("taints")}
    )


async def _add_logs(around: Scene, archive: Archive, seen: Observed) -> None:
    # The head and pods in trouble tell most, if not all of them fit.
    pods = sorted(seen.pods, key=lambda pod: _is_dull(pod))
    for pod in pods[:PODS_LIMIT]:
        await _add_pod_logs(around, archive, ObjectKey(around.key.namespace, pod["metadata"]["name"]), pod, "logs")
    if len(pods) > PODS_LIMIT:
        archive.missing.append(f"logs of {len(pods) - PODS_LIMIT} more pods")


def _is_dull(pod: JSON) -> bool:
    is_worker = pod["metadata"].get("labels", {}).get("ray.io/node-type") == "worker"
    ready = any(
        one["type"] == "Ready" and one["status"] == "True" for one in pod.get("status", {}).get("conditions", ())
    )
    return bool(is_worker and ready)


async def _add_operator(around: Scene, archive: Archive) -> None:
    pods: Sequence[JSON] = (
        await _tried("operator", partial(around.kube.list, PODS, labels=OPERATOR_LABELS), archive) or ()
    )
    if not pods:
        archive.missing.append("operator: no pod of it was found")
    for pod in pods[:5]:
        key = ObjectKey(pod["metadata"]["namespace"], pod["metadata"]["name"])
        archive.add_json(f"operator/{key.name}.json", masked_object(pod))
        await _add_pod_logs(around, archive, key, pod, "operator")


async def _add_pod_logs(around: Scene, archive: Archive, key: ObjectKey, pod: JSON, folder: str) -> None:
    spec, status = pod["spec"], pod.get("status", {})
    statuses = (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ()))
    restarted = {one["name"] for one in statuses if one.get("restartCount")}
    begun = {one["name"] for one in statuses if not one.get("state", {}).get("waiting") or one.get("restartCount")}
    for container in (*spec.get("initContainers", ()), *spec["containers"]):
        name = container["name"]
        for is_previous in (False, True) if name in restarted else (False,):
            if name not in begun:
                continue
            query = {
                "container": name,
                "tailLines": LOG_LINES,
                "limitBytes": 4 * LOG_BYTES,
                "previous": is_previous or None,
            }
            what = f"{folder}/{key.name}/{name}{'.previous' if is_previous else ''}.log"
            data = await _tried(what, partial(around.kube.subresource, PODS, key, "log", query=query), archive)
            if data is not None:
                archive.add(what, masked_log(data))


async def _tried(what: str, read: Callable[[], Awaitable[T]], archive: Archive) -> T | None:
    """What was read, or a line in the archive that says why not."""
    try:
        return await read()
    except RaykeeperError as exc:
        archive.missing.append(f"{what}: {exc}")
        return None
