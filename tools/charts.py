"""What is generated of the Helm charts from their `values.yaml`.

Of each chart: the schema of its values, the table of them in the README, and `values.keys.json`, by which the templates
find a misspelt value. The charts ray-job and ray-service share templates and values with ray-cluster.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from raykeeper.api.meta import JSON
from tools.chart_types import NUMBER, TEXT, ChartTypes

CHARTS: Final = Path(__file__).parent.parent / "helm-chart"
NAMES: Final = ("kuberay-operator", "kuberay-apiserver", "ray-cluster", "ray-history-server", "ray-job", "ray-service")
TABLE_NOTICE: Final = "<!-- What follows is written by `make generate` from values.yaml; edit that. -->\n"
SOURCE: Final = "ray-cluster"
"""The chart whose templates and values others copy."""
OBJECTS: Final = "_objects.tpl"
OBJECTS_SOURCE: Final = "kuberay-operator"
"""The exception: ray-cluster has no Deployment, and so no use for it."""
COPIES: Final[Mapping[str, tuple[str, ...]]] = {
    OBJECTS: ("kuberay-apiserver", "ray-history-server"),
    "_values.tpl": ("kuberay-operator", "kuberay-apiserver", "ray-history-server", "ray-job", "ray-service"),
    "_merge.tpl": ("kuberay-operator", "kuberay-apiserver", "ray-history-server", "ray-job", "ray-service"),
    "_metadata.tpl": ("kuberay-operator", "kuberay-apiserver", "ray-history-server", "ray-job", "ray-service"),
    "extraobjects.yaml": ("kuberay-operator", "kuberay-apiserver", "ray-history-server", "ray-job", "ray-service"),
    "_cluster.tpl": ("ray-job", "ray-service"),
    "podmonitor.yaml": ("ray-job", "ray-service"),
    "serviceaccount.yaml": ("ray-job", "ray-service"),
}
"""Templates that other charts copy; Helm would want a published chart for sharing them."""
CLUSTER_VALUES: Final = "# ---- The cluster itself: shared with the charts ray-job and ray-service.\n"
COPIED_VALUES: Final = (
    "# ---- What follows is written by `make generate` from the values of the chart ray-cluster; edit those.\n"
)

_OF_CLUSTERS: Final[Mapping[str, str]] = {
    "autoscaler": "head.enableInTreeAutoscaling",
    "autoscaling": "head.enableInTreeAutoscaling",
    "ingress": "head.enableIngress",
    "redis": "gcsFaultTolerance.redisAddress",
    "replicas": "worker.replicas",
    "resources": "head.resources and worker.resources are what there is",
    "workerGroups": "additionalWorkerGroups",
    "workerGroupSpecs": "additionalWorkerGroups",
    "*.env": "*.containerEnv",
    "*.sidecars": "*.sidecarContainers",
}
_OF_PODS: Final[Mapping[str, str]] = {
    "args": "extraArgs",
    "resources.cpu": "resources.limits.cpu",
    "resources.memory": "resources.limits.memory",
    "sidecars": "template",
    "tag": "image.tag",
    "volumes": "template",
}
HINTS: Final[Mapping[str, Mapping[str, str]]] = {
    "kuberay-operator": {
        **_OF_PODS,
        "crds.install": "crds.enabled",
        "crds.upgrade": "crds.enabled",
        "logging.level": "set extraArgs: [--zap-log-level=debug]",
        "namespace": "watchNamespace",
        "webhook": "this operator has no webhook",
    },
    "kuberay-apiserver": {
        **_OF_PODS,
        "security.enabled": "`security: null` leaves the proxy out",
        "security.token": "security.env.SECURITY_TOKEN",
    },
    "ray-history-server": {
        **_OF_PODS,
        "bucket": "store.url",
        "cache.size": "cache.megabytes",
        "storage": "store",
        "store.bucket": "store.url",
        "store.endpoint": "store.env.S3_ENDPOINT",
        "store.region": "store.env.S3_REGION",
    },
    "ray-cluster": _OF_CLUSTERS,
    "ray-job": {**_OF_CLUSTERS, "rayClusterSpec": "clusterSpec", "runtimeEnvYAML": "runtimeEnv"},
    "ray-service": {**_OF_CLUSTERS, "rayClusterConfig": "clusterSpec", "applications": "serveConfigV2.applications"},
}
"""What people write who know other charts, and what they look for: a path, or words. `*.` is any place."""

_SCALAR: Final[JSON] = {"type": ["string", "number", "boolean", "null"]}
_WRITTEN_AS_TEXT: Final[JSON] = {"type": ["string", "integer", "boolean", "null"]}
"""In maps of labels: `--set nodeSelector.gpu=true` is common. 1.10 is refused, since YAML makes 1.1 of it."""
_MAPS_OF_TEXT: Final = frozenset({"additionalLabels"})
_PORT: Final[JSON] = {"type": ["integer", "string", "null"], "pattern": "^[0-9]+$"}
_FLAG: Final[JSON] = {"type": ["boolean", "null"]}
_COUNT: Final[JSON] = {"type": ["integer", "null"]}
_OPEN: Final[JSON] = {"type": ["object", "null"]}
_LIST_OF_OPEN: Final[JSON] = {"type": ["array", "null"], "items": {"type": "object"}}
_IMAGE: Final[JSON] = {
    "type": ["object", "null"],
    "properties": {"repository": TEXT, "tag": NUMBER, "digest": TEXT, "pullPolicy": TEXT},
}
_SPECIAL: Final[Mapping[str, JSON]] = {
    "tag": NUMBER,
    "image": _IMAGE,
    "kubeClient.qps": NUMBER,
    "kubeClient.burst": NUMBER,
    "reconcileConcurrency": NUMBER,
    "useKubernetesProxy": _FLAG,
    "strategy": _OPEN,
    "batchScheduler.name": {
        "type": ["string", "null"],
        "enum": ["", "volcano", "yunikorn", "scheduler-plugins", "kai-scheduler", None],
    },
    "logging.stdoutEncoder": {"type": ["string", "null"], "enum": ["", "json", "console", None]},
    "logging.fileEncoder": {"type": ["string", "null"], "enum": ["", "json", "console", None]},
    "watchNamespace": {"type": ["array", "null"], "items": TEXT},
    "extraArgs": {"type": ["array", "null"], "items": TEXT},
    "featureGates": {
        "type": ["array", "null"],
        "items": {
            "type": "object",
            "properties": {"name": TEXT, "enabled": {"type": "boolean"}},
            "required": ["name", "enabled"],
        },
    },
    "extraObjects": {"type": ["array", "null"], "items": {"type": ["object", "string"]}},
    "spec": _OPEN,
    "command": {"type": ["array", "null"], "items": TEXT},
    "args": {"type": ["array", "null"], "items": TEXT},
    "rayStartParams": {"type": ["object", "null"], "additionalProperties": _SCALAR},
    "initArgs": {"type": ["object", "null"], "additionalProperties": _SCALAR},
    "groupName": NUMBER,
    "enableInTreeAutoscaling": _FLAG,
    "enableIngress": _FLAG,
    "suspend": _FLAG,
    "numOfHosts": _COUNT,
    "idleTimeoutSeconds": _COUNT,
    "priority": _COUNT,
    "containerPort": {"type": ["array", "null"], "items": {"$ref": "#/definitions/ContainerPort"}},
    "service.ports": {
        "type": ["array", "null"],
        "items": {
            "type": "object",
            "properties": {"name": TEXT, "port": _PORT, "targetPort": NUMBER, "nodePort": _PORT, "protocol": TEXT},
        },
    },
    "ingress.hosts": {
        "type": ["array", "null"],
        "items": {
            "type": "object",
            "properties": {
                "host": TEXT,
                "paths": {"type": "array", "items": {"type": "object", "properties": {"path": TEXT, "pathType": TEXT}}},
            },
        },
    },
    "ingress.tls": {
        "type": ["array", "null"],
        "items": {
            "type": "object",
            "properties": {"hosts": {"type": ["array", "null"], "items": TEXT}, "secretName": TEXT},
        },
    },
    "cors.allowOrigin": TEXT,
    "service.port": _PORT,
    "security.env": {"type": ["object", "null"], "additionalProperties": _SCALAR},
    "security.proxy.command": {"type": ["array", "null"], "items": TEXT},
    "history.collector.image": TEXT,
    "history.store.env": {"type": ["object", "null"], "additionalProperties": _SCALAR},
    "history.store.volume": _OPEN,
    "store.env": {"type": ["object", "null"], "additionalProperties": _SCALAR},
    "auth.mode": {"type": "string", "enum": ["oidc", "ram", "kubernetes", "token", "none"]},
    "auth.also": {"type": ["array", "null"], "items": {"type": "string", "enum": ["token", "kubernetes"]}},
    "auth.oidc.scopes": {"type": ["array", "null"], "items": TEXT},
    "auth.allow.uids": {"type": ["array", "null"], "items": TEXT},
    "auth.allow.emails": {"type": ["array", "null"], "items": TEXT},
    "auth.allow.groups": {"type": ["array", "null"], "items": TEXT},
    "auth.audiences": {"type": ["array", "null"], "items": TEXT},
    "auth.namespaceMap": {
        "type": ["object", "null"],
        "properties": {
            "everybody": {"type": "array", "items": TEXT},
            "groups": {"type": "object", "additionalProperties": {"type": "array", "items": TEXT}},
            "users": {"type": "object", "additionalProperties": {"type": "array", "items": TEXT}},
        },
        "additionalProperties": False,
    },
    "auth.sessionMinutes": NUMBER,
    "auth.maxHours": NUMBER,
    "store.backend": {
        "type": ["string", "null"],
        "enum": ["", "s3", "gcs", "azureblob", "aliyunoss", "local", "file", None],
    },
    "kubernetesFacts.namespaces": {"type": ["array", "null"], "items": TEXT},
    "alerts.config": _OPEN,
    "retention": _OPEN,
    "cache.volume": _OPEN,
    "httpRoute.parentRefs": _LIST_OF_OPEN,
    "networkPolicy.from": _LIST_OF_OPEN,
    "networkPolicy.egress": _LIST_OF_OPEN,
    "httpRoute.hostnames": {"type": ["array", "null"], "items": TEXT},
    "podDisruptionBudget.maxUnavailable": NUMBER,
    "runtimeEnv": {"type": ["object", "string", "null"]},
    "serveConfigV2": {"type": ["object", "string", "null"]},
    "clusterSpec": _OPEN,
    "entrypointNumCpus": NUMBER,
    "entrypointNumGpus": NUMBER,
    "backoffLimit": _COUNT,
    "activeDeadlineSeconds": _COUNT,
    "preRunningDeadlineSeconds": _COUNT,
    "ttlSecondsAfterFinished": _COUNT,
    "rayClusterDeletionDelaySeconds": _COUNT,
    "excludeHeadPodFromServeSvc": _FLAG,
    "route.tls": {"type": ["boolean", "object", "null"]},
}
"""Values by their path or their last name, where the default does not say what may be given."""
_SPECIAL_OF: Final[Mapping[str, Mapping[str, JSON]]] = {
    "kuberay-apiserver": {
        "auth.mode": {
            "type": ["string", "null"],
            "enum": ["", "token", "passthrough", "kubernetes", "oidc", "none", None],
        }
    },
}
"""Values that mean another thing in one chart, by the chart and their path."""
_SCALARS: Final = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"))


def values_schema(values: JSON, types: ChartTypes) -> JSON:
    """The content of `values.schema.json`. Unknown keys are left to the templates, which name the nearest one."""
    schema = _object(values, "", types)
    schema["properties"] |= {"global": _OPEN, "enabled": _FLAG}  # Helm's own, for charts inside charts
    if "worker" in values:
        schema["definitions"] = {"workerGroup": schema["properties"]["worker"]}
        schema["properties"]["worker"] = {"$ref": "#/definitions/workerGroup"}
        groups = {"type": ["object", "null"], "additionalProperties": {"$ref": "#/definitions/workerGroup"}}
        schema["properties"]["additionalWorkerGroups"] = groups
    definitions = schema.pop("definitions", {}) | types.definitions()
    return {"$schema": "http://json-schema.org/draft-07/schema#", **schema, "definitions": definitions}


def _object(values: JSON, path: str, types: ChartTypes) -> JSON:
    prefix = f"{path}." if path else ""
    properties = {key: _schema(value, f"{prefix}{key}", types) for key, value in values.items()}
    return {"type": ["object", "null"], "properties": properties}


def _schema(default: Any, path: str, types: ChartTypes) -> JSON:
    if (own := _SPECIAL_OF.get(types.chart, {}).get(path)) is not None:
        return dict(own)
    for name in (path, path.rpartition(".")[2]):
        if name in _SPECIAL:
            return dict(_SPECIAL[name])
        if (known := types.schema(name)) is not None:
            return known
    if default == {} or name in _MAPS_OF_TEXT:
        return {"type": ["object", "null"], "additionalProperties": _WRITTEN_AS_TEXT}
    if isinstance(default, dict):
        return _object(default, path, types)
    return {"type": [next(name for kind, name in _SCALARS if isinstance(default, kind)), "null"]}


def known_keys(schema: JSON, hints: Mapping[str, str]) -> str:
    """The content of `values.keys.json`: what keys there are at each place; null where any may be."""
    types = {name: _keys(part) for name, part in schema["definitions"].items()}
    lines = [f'  "{name}": {_compact(part)}' for name, part in types.items()]
    values = _compact(_keys({key: part for key, part in schema.items() if key != "definitions"}))
    head = f'{{\n "hints": {_compact(dict(hints))},\n "values": {values},\n "types": {{\n'
    return head + ",\n".join(lines) + "\n }\n}\n"


def _keys(schema: JSON) -> Any:
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2]
    if "properties" in schema:
        return {name: _keys(part) for name, part in schema["properties"].items()}
    if "items" in schema:
        return _keys(schema["items"])
    each = schema.get("additionalProperties")
    return {"*": _keys(each)} if each and _keys(each) is not None else None


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


_KEY: Final = re.compile(r"^( *)([A-Za-z]+):")


def described_values(text: str) -> Iterator[tuple[str, str]]:
    """The path of every value that has a comment `# -- ...` above it, with that comment."""
    path: list[str] = []
    comment: list[str] = []
    for line in text.splitlines():
        if found := _KEY.match(line):
            path = [*path[: len(found[1]) // 2], found[2]]
            if comment:
                yield ".".join(path), " ".join(comment)
            comment = []
        elif line.strip().startswith("# -- "):
            comment = [line.strip().removeprefix("# -- ")]
        elif comment and line.strip().startswith("# "):
            comment.append(line.strip().removeprefix("# "))


def readme(written: str, text: str, values: JSON) -> str:
    """What a person wrote, then the table of values."""
    rows = [f"| `{path}` | {_default(_value(values, path))} | {meaning} |" for path, meaning in described_values(text)]
    head = [f"{written.partition(TABLE_NOTICE)[0]}{TABLE_NOTICE}", "| value | default | meaning |", "|---|---|---|"]
    return "\n".join([*head, *rows, ""])


_LONGEST_DEFAULT: Final = 400


def _default(value: Any) -> str:
    text = json.dumps(value)
    return f"`{text}`" if len(text) <= _LONGEST_DEFAULT else "see `values.yaml`"


def _value(values: JSON, path: str) -> Any:
    found: Any = values
    for key in path.split("."):
        found = found[key]
    return found


def chart_files() -> Iterator[tuple[Path, str]]:
    """The generated files of all charts with what they should contain."""
    for template, names in COPIES.items():
        source = OBJECTS_SOURCE if template == OBJECTS else SOURCE
        copied = (CHARTS / source / "templates" / template).read_text()
        for name in names:
            yield CHARTS / name / "templates" / template, copied
    for name in NAMES:
        yield from _files_of(name)


def _files_of(name: str) -> Iterator[tuple[Path, str]]:
    chart = CHARTS / name
    text = (chart / "values.yaml").read_text()
    if name in COPIES["_cluster.tpl"]:
        text = _with_cluster_values(text)
        yield chart / "values.yaml", text
    values = yaml.safe_load(text)
    schema = values_schema(values, ChartTypes(name))
    yield chart / "values.schema.json", json.dumps(schema, indent=1) + "\n"
    yield chart / "values.keys.json", known_keys(schema, HINTS[name])
    yield chart / "README.md", readme((chart / "README.md").read_text(), text, values)


def _with_cluster_values(text: str) -> str:
    """What a person wrote, then the values of the chart ray-cluster that describe the cluster."""
    _, _, shared = (CHARTS / SOURCE / "values.yaml").read_text().partition(CLUSTER_VALUES)
    return text.partition(COPIED_VALUES)[0] + COPIED_VALUES + shared
