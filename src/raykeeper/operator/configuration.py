"""The Configuration file (config.ray.io/v1alpha1): every field KubeRay 1.7 knows, and `history`, which it skips."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from raykeeper.api.meta import JSON
from raykeeper.errors import Misconfigured

if TYPE_CHECKING:
    import yaml

API_VERSION, KIND = "config.ray.io/v1alpha1", "Configuration"


class HistoryConfiguration(msgspec.Struct, forbid_unknown_fields=True, frozen=True, rename="camel"):
    """The settings of history by annotation. The names are those of `HistorySettings`."""

    collector_image: str = ""
    collector_image_pull_policy: str = ""
    collector_resources: JSON | None = None
    store_url: str = ""
    store_volume: JSON | None = None
    env: tuple[JSON, ...] = ()
    secret_name: str = ""
    service_account_prefix: str = ""
    service_account_annotations: dict[str, str] = msgspec.field(default_factory=dict)
    url: str = ""
    callback_service_name: str = ""
    cloud_role_name: str = ""
    oidc_provider_arn: str = ""
    oss_bucket: str = ""
    oss_endpoint: str = msgspec.field(name="ossEndPoint", default="")
    oss_region: str = ""
    oss_root_dir: str = msgspec.field(name="ossHistoryServerRootDir", default="")


class Configuration(msgspec.Struct, forbid_unknown_fields=True, frozen=True, rename="camel"):
    """What a file says, or flags that mean the same. None is "not said"; so are, as in Go, empty texts and lists."""

    api_version: Literal["config.ray.io/v1alpha1"]
    kind: Literal["Configuration"]
    metrics_addr: str | None = None
    probe_addr: str | None = None
    enable_leader_election: bool | None = None
    leader_election_namespace: str | None = None
    reconcile_concurrency: int | None = None
    watch_namespace: str | None = None
    log_file: str | None = None
    log_file_encoder: str | None = None
    log_stdout_encoder: str | None = None
    batch_scheduler: str | None = None
    enable_batch_scheduler: bool | None = None
    head_sidecar_containers: tuple[JSON, ...] | None = None
    worker_sidecar_containers: tuple[JSON, ...] | None = None
    default_container_envs: tuple[JSON, ...] | None = None
    default_pod_annotations: dict[str, str] | None = None
    default_pod_labels: dict[str, str] | None = None
    use_kubernetes_proxy: bool | None = None
    delete_ray_job_after_job_finishes: bool | None = None
    enable_metrics: bool | None = None
    qps: float | None = None
    burst: int | None = None
    history: HistoryConfiguration = HistoryConfiguration()


def read_configuration(path: Path) -> Configuration:
    """The content of a file. Raises `Misconfigured` naming the file and the field that is wrong."""
    try:
        text = path.read_text()
    except OSError as exc:
        raise Misconfigured("--config", str(path), f"it cannot be read ({exc.strerror})") from exc
    except UnicodeDecodeError as exc:
        raise Misconfigured("--config", str(path), "it is not text") from exc
    try:
        return parse_configuration(text)
    except ValueError as exc:
        raise Misconfigured("--config", str(path), str(exc)) from exc


def parse_configuration(text: str) -> Configuration:
    """The Configuration in a YAML or JSON text. Raises `ValueError` with one sentence on what is wrong."""
    document = _document(text)
    if not isinstance(document, dict):
        raise ValueError(f"it must hold one {KIND} of {API_VERSION}")  # noqa: TRY004 - wrong content, not our types
    try:
        configuration = msgspec.convert(document, Configuration)
    except msgspec.ValidationError as exc:
        raise ValueError(str(exc)) from exc
    lists = {
        "headSidecarContainers": configuration.head_sidecar_containers,
        "workerSidecarContainers": configuration.worker_sidecar_containers,
        "defaultContainerEnvs": configuration.default_container_envs,
        "history.env": configuration.history.env,
    }
    for place in unnamed(lists):
        raise ValueError(f"{place} has no name")
    return configuration


def unnamed(lists: Mapping[str, Sequence[JSON] | None]) -> Iterator[str]:
    """Containers and variables that Kubernetes would refuse in every pod, by the name of their list."""
    for field, items in lists.items():
        for index, item in enumerate(items or ()):
            if not item.get("name"):
                yield f"{field}[{index}]"


def _document(text: str) -> Any:
    """What the text says; a mapping that names a key twice, of which YAML would silently drop the first, is refused."""
    import yaml  # here, since most operators have no file, and at a limit of 100m this is half a second

    class StrictLoader(yaml.SafeLoader):
        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            seen = set()
            for key, _ in node.value:
                if key.value in seen:
                    cause = f"key {key.value!r} is there twice"
                    raise yaml.constructor.ConstructorError(None, None, cause, key.start_mark)
                seen.add(key.value)
            return super().construct_mapping(node, deep)

    try:
        return yaml.load(text, Loader=StrictLoader)  # noqa: S506 - derived from the safe loader
    except yaml.MarkedYAMLError as exc:
        raise ValueError(_in_one_line(exc)) from exc
    except yaml.YAMLError as exc:
        raise ValueError(" ".join(str(exc).split())) from exc


def _in_one_line(exc: yaml.MarkedYAMLError) -> str:
    if exc.problem_mark is not None:
        return f"line {exc.problem_mark.line + 1}: {exc.problem}"
    return " ".join(str(exc).split())
