"""From the command line and the environment to the settings. Pure.

Which one counts: a flag, then an environment variable, then the store's file, which `storage/` reads, then the default.
KubeRay lets variables beat flags, and the file both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from raykeeper.api.containers import DASHBOARD_PORT, RAY_TOKEN_PATH
from raykeeper.collector.environment import WITHOUT_EFFECT as VARIABLES_WITHOUT_EFFECT
from raykeeper.collector.flags import FLAGS, WITHOUT_EFFECT
from raykeeper.collector.settings import (
    BucketSettings,
    ClusterSettings,
    CollectorSettings,
    HeadSettings,
    LogFileSettings,
    NodeSettings,
    RayTokenSettings,
    SampleSettings,
    SinkSettings,
    SpoolSettings,
)
from raykeeper.collector.values import (
    parse_base_url,
    parse_endpoints,
    parse_hosts,
    parse_object_name,
    parse_own_port,
    parse_owner_kind,
    parse_port,
    parse_role,
    parse_seal_size,
)
from raykeeper.errors import Misconfigured
from raykeeper.settings.addresses import parse_address
from raykeeper.settings.arguments import parse_arguments
from raykeeper.settings.log_values import read_log_settings
from raykeeper.settings.sources import Sources
from raykeeper.settings.store_choice import read_store_choice
from raykeeper.settings.values import (
    MIB,
    parse_duration,
    parse_mebibytes,
    parse_path,
    parse_switch,
)
from raykeeper.settings.variables import Variables

_OUTSIDE_KUBERNETES = "local"
_ROTATION_SECONDS, _MAX_FILE_BYTES = 5 * 60.0, 100 * MIB
"""KubeRay's bounds for a segment, where nobody says otherwise."""
_SEGMENTS_IN_SPOOL = 4  # one fills, one is sent, and two wait when the bucket is slow


def read_settings(arguments: Sequence[str], environment: Mapping[str, str]) -> CollectorSettings:
    """All settings. Raises `Misconfigured` naming the first flag or variable that cannot be used."""
    sources = Sources(FLAGS, parse_arguments(FLAGS, arguments), Variables(environment))
    node = _node(sources)
    settings = CollectorSettings(
        cluster=_cluster(sources),
        bucket=_bucket(sources),
        node=node,
        sink=_sink(sources),
        spool=_spool(sources, node.ray_tmp_root),
        log_files=_log_files(sources),
        samples=SampleSettings(sources.read("enable-resource-collector", parse_switch, SampleSettings.is_on)),
        head=_head(sources),
        metrics_address=sources.read("metrics-addr", _parse_listener, CollectorSettings.metrics_address),
        grace_seconds=sources.read("grace-period", parse_duration, CollectorSettings.grace_seconds),
        runs_once=_runs_once(sources),
        logs=read_log_settings(sources),
        ignored=tuple(_ignored(sources)),
    )
    _check_halves(sources, settings)
    return settings


def _cluster(sources: Sources) -> ClusterSettings:
    name = sources.read("ray-cluster-name", parse_object_name, "")
    if not name:
        cure = "name the cluster, by this flag or the variable RAY_CLUSTER_NAME (in a pod: its label ray.io/cluster)"
        raise Misconfigured("--ray-cluster-name", name, cure)
    in_kubernetes = sources.variables.text("KUBERNETES_SERVICE_HOST") is not None
    namespace = ClusterSettings.namespace if in_kubernetes else _OUTSIDE_KUBERNETES
    kind, owner = sources.find_text("owner-kind"), sources.find_text("owner-name")
    for said, other in ((kind, owner), (owner, kind)):
        if said and not other:
            raise Misconfigured(said.setting, said.text, "kind and name of an owner are given together or not at all")
    return ClusterSettings(
        name=name,
        namespace=sources.read("ray-cluster-namespace", parse_object_name, namespace),
        owner_kind=parse_owner_kind(kind.setting, kind.text) if kind else None,
        owner_name=parse_object_name(owner.setting, owner.text) if owner else "",
        uid=sources.variables.text("RAY_CLUSTER_UID") or "",
    )


def _bucket(sources: Sources) -> BucketSettings:
    cure = "say where the history goes, by this flag, the variable STORAGE_BACKEND, or --store-url=s3://bucket"
    return BucketSettings(
        *read_store_choice(sources, "store-url", Misconfigured("--storage-backend", "", cure), does="goes")
    )


def _node(sources: Sources) -> NodeSettings:
    variables, default = sources.variables, NodeSettings()
    return NodeSettings(
        # A one-time capture is about what the dashboard still knows, which only the head's collector asks.
        role=sources.read("role", parse_role, "head" if _runs_once(sources) else default.role),
        ray_tmp_root=sources.read("ray-tmp-root", parse_path, default.ray_tmp_root),
        pod_name=variables.text("POD_NAME") or variables.text("HOSTNAME") or "",
        pod_ip=variables.text("POD_IP") or "",
    )


def _runs_once(sources: Sources) -> bool:
    return sources.read("once", parse_switch, CollectorSettings.runs_once)


def _sink(sources: Sources) -> SinkSettings:
    return SinkSettings(
        is_on=sources.read("enable-event-collector", parse_switch, SinkSettings.is_on),
        hosts=sources.read("events-bind", parse_hosts, SinkSettings.hosts),
        port=sources.read("events-port", parse_own_port, SinkSettings.port),
    )


def _spool(sources: Sources, ray_tmp_root: Path) -> SpoolSettings:
    max_seconds = sources.read("event-rotation-interval", parse_duration, _ROTATION_SECONDS)
    max_file_bytes = sources.read("event-max-file-size-mb", parse_mebibytes, _MAX_FILE_BYTES)
    max_bytes = sources.read("event-max-disk-mb", parse_mebibytes, SpoolSettings.max_bytes)
    seal_seconds = sources.read("seal-age", parse_duration, SpoolSettings.seal_seconds)
    idle_seconds = sources.read("idle-seal-age", parse_duration, SpoolSettings.idle_seal_seconds)
    seal_bytes = sources.read("seal-size-mb", parse_seal_size, SpoolSettings.seal_bytes)
    return SpoolSettings(
        folder=sources.read("event-data-dir", parse_path, ray_tmp_root / SpoolSettings.folder.name),
        seal_seconds=min(seal_seconds, max_seconds),
        idle_seal_seconds=min(max(idle_seconds, seal_seconds), max_seconds),
        seal_bytes=min(seal_bytes, max_file_bytes, max_bytes // _SEGMENTS_IN_SPOOL),
        max_bytes=max_bytes,
    )


def _log_files(sources: Sources) -> LogFileSettings:
    return LogFileSettings(
        is_on=sources.read("enable-log-collector", parse_switch, LogFileSettings.is_on),
        user_seconds=sources.read("user-log-interval", parse_duration, LogFileSettings.user_seconds),
        component_seconds=sources.read("component-log-interval", parse_duration, LogFileSettings.component_seconds),
        max_held_bytes=sources.read("held-log-mb", parse_mebibytes, LogFileSettings.max_held_bytes),
    )


def _head(sources: Sources) -> HeadSettings:
    return HeadSettings(
        dashboard_address=sources.read("ray-dashboard-address", parse_base_url, HeadSettings.dashboard_address),
        head_address=_head_address(sources.variables),
        poll_seconds=sources.read("poll-interval", parse_duration, HeadSettings.poll_seconds),
        additional_endpoints=sources.read("additional-endpoints", parse_endpoints, ()),
        auth=_auth(sources.variables),
    )


def _head_address(variables: Variables) -> str:
    host, port = variables.text("FQ_RAY_IP"), variables.text("RAY_DASHBOARD_PORT")
    number = parse_port("RAY_DASHBOARD_PORT", port) if port else DASHBOARD_PORT
    return parse_base_url("FQ_RAY_IP", host, number) if host else ""


def _auth(variables: Variables) -> RayTokenSettings:
    mode = (variables.text("RAY_AUTH_MODE") or "").lower()
    projects = parse_switch("RAY_ENABLE_K8S_TOKEN_AUTH", variables.text("RAY_ENABLE_K8S_TOKEN_AUTH") or "false")
    token, path = _token(variables), variables.text("RAY_AUTH_TOKEN_PATH")
    if projects:
        return RayTokenSettings(mode, token_file=Path(RAY_TOKEN_PATH, "token"))
    if mode == "token" and not (token or path):
        cure = "there is no token; set RAY_AUTH_TOKEN, RAY_AUTH_TOKEN_PATH or RAY_ENABLE_K8S_TOKEN_AUTH=true"
        raise Misconfigured("RAY_AUTH_MODE", mode, cure)
    return RayTokenSettings(mode, token, Path(path) if path and not token else None)


def _token(variables: Variables) -> str:
    """Without the line break that secrets are often made with."""
    token = (variables.text("RAY_AUTH_TOKEN") or "").strip()
    if not token.isprintable():
        raise Misconfigured("RAY_AUTH_TOKEN", "…", "a token is one line of text")
    return token


def _parse_listener(setting: str, text: str) -> str:
    parse_address(setting, text)
    return text


def _ignored(sources: Sources) -> Iterator[str]:
    for name in WITHOUT_EFFECT:
        if said := sources.find(name):
            yield said.setting
    yield from (name for name in VARIABLES_WITHOUT_EFFECT if sources.variables.text(name))


def _check_halves(sources: Sources, settings: CollectorSettings) -> None:
    said = sources.find("enable-log-collector")
    if said and not (settings.sink.is_on or settings.log_files.is_on):
        raise Misconfigured(said.setting, said.text, "events or logs must be collected, or there is nothing to do")
