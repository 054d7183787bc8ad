"""From the command line, the environment and the Configuration file to the settings. Pure but for reading the file.

Which one counts, in this order:
1. a flag, where no file is given (`--config`) or the file has no such field; the encoders of the log also beside one;
2. an environment variable;
3. a field of the file;
4. the default.
KubeRay 1.7 has the same order but drops three fields of the file (B20 in docs/compatibility.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from raykeeper.api.syntax import is_dns_1123_label
from raykeeper.errors import Misconfigured
from raykeeper.kube.leader.installations import Coverage, parse_coverage, parse_others
from raykeeper.kube.leader.lease import JITTER, ElectionSettings
from raykeeper.kube.serving.server import ServingSettings
from raykeeper.operator.configuration import (
    API_VERSION,
    KIND,
    Configuration,
    HistoryConfiguration,
    read_configuration,
    unnamed,
)
from raykeeper.operator.flags import FLAGS, WITHOUT_EFFECT
from raykeeper.operator.gates import FLAG as GATES_FLAG
from raykeeper.operator.gates import FeatureGates, Gate, parse_gates
from raykeeper.operator.logs import log_settings
from raykeeper.operator.schedulers.choice import chosen_name
from raykeeper.operator.schedulers.kubernetes_was import KubernetesWas
from raykeeper.operator.settings import (
    ClientSettings,
    HistorySettings,
    LeadershipSettings,
    OperatorSettings,
    PodSettings,
    RayClusterSettings,
    RayJobSettings,
    RayServiceSettings,
)
from raykeeper.settings.addresses import parse_address
from raykeeper.settings.arguments import parse_arguments, parse_values
from raykeeper.settings.variables import Variables

_FLAG_OF_FIELD = {flag.field: flag for flag in FLAGS if flag.field}
_ENCODERS = frozenset({"logStdoutEncoder", "logFileEncoder"})
_HISTORY = "history."


@dataclass(frozen=True)
class _Said:
    """What file or flags say, and how messages call each field of it."""

    fields: Configuration
    file: Path | None
    by_flag: frozenset[str]
    """Fields whose value comes from a flag."""

    def name(self, field: str) -> str:
        return f"{field} in {self.file}" if self.file and field not in self.by_flag else _FLAG_OF_FIELD[field].spelling


def read_settings(arguments: Sequence[str], environment: Mapping[str, str]) -> OperatorSettings:
    """All settings. Raises `Misconfigured` naming the first flag, gate, variable or field that cannot be used."""
    given = parse_arguments(FLAGS, arguments)
    variables = Variables(environment)
    if variables.is_on("ENABLE_WEBHOOKS"):
        raise Misconfigured("ENABLE_WEBHOOKS", "true", "this version has no webhooks")
    said = _said(given)
    fields = said.fields
    gates = parse_gates(given.get("feature-gates", ""))
    return OperatorSettings(
        logs=log_settings(given, variables, fields, said.name),
        serving=_serving(said),
        client=_client(said, given),
        leadership=_leadership(said, given),
        gates=gates,
        reconcile_concurrency=_count(said, "reconcileConcurrency", fields.reconcile_concurrency)
        or OperatorSettings.reconcile_concurrency,
        has_object_metrics=fields.enable_metrics or False,
        batch_scheduler=_batch_scheduler(said, gates),
        pods=_pods(fields, variables),
        history=_history(said, variables),
        raycluster=_raycluster(variables),
        rayjob=_rayjob(fields, variables),
        rayservice=RayServiceSettings(variables.is_not_off("ENABLE_ZERO_DOWNTIME")),
        ignored=tuple(_ignored(given, beside_file=said.file is not None)),
    )


def _said(given: Mapping[str, str]) -> _Said:
    """The file, and of the flags those that count beside it; or the flags as if they stood in a file."""
    values = parse_values(FLAGS, given)
    by_flag = {field: values[flag.name] for field, flag in _FLAG_OF_FIELD.items() if flag.name in values}
    if not given.get("config"):
        flags = {"apiVersion": API_VERSION, "kind": KIND, **_nested(by_flag)}
        return _Said(msgspec.convert(flags, Configuration), None, frozenset(by_flag))
    file = Path(given["config"])
    encoders = {field: value for field, value in by_flag.items() if field in _ENCODERS}
    both = {**msgspec.to_builtins(read_configuration(file)), **encoders}
    return _Said(msgspec.convert(both, Configuration), file, frozenset(encoders))


def _nested(by_flag: Mapping[str, object]) -> dict[str, object]:
    """The fields as the file has them: those of history in a part of their own. `Misconfigured` names a wrong one."""
    plain = {field: value for field, value in by_flag.items() if not field.startswith(_HISTORY)}
    history = {field.removeprefix(_HISTORY): value for field, value in by_flag.items() if field.startswith(_HISTORY)}
    for field, value in history.items():
        flag = _FLAG_OF_FIELD[_HISTORY + field].spelling
        try:
            found = msgspec.convert({field: value}, HistoryConfiguration)
        except msgspec.ValidationError as exc:
            raise Misconfigured(flag, msgspec.json.encode(value).decode(), str(exc)) from exc
        for place in unnamed({flag: found.env}):
            raise Misconfigured(flag, msgspec.json.encode(value).decode(), f"{place} has no name")
    return {**plain, "history": history}


def _ignored(given: Mapping[str, str], *, beside_file: bool) -> list[str]:
    superseded = {flag.name for field, flag in _FLAG_OF_FIELD.items() if beside_file and field not in _ENCODERS}
    return [f"--{name}" for name in given if name in superseded or name in WITHOUT_EFFECT]


def _batch_scheduler(said: _Said, gates: FeatureGates) -> str:
    setting = said.name("batchScheduler")
    name = chosen_name(
        setting,
        said.fields.batch_scheduler or "",
        said.name("enableBatchScheduler"),
        is_legacy=said.fields.enable_batch_scheduler or False,
    )
    gate = Gate.KUBERNETES_WAS
    if not gates.is_on(gate):
        return name
    if name:
        cure = f"{setting} asks for {name}, and there is one scheduler at a time; use one of them"
        raise Misconfigured(GATES_FLAG, f"{gate.value.name}=true", cure)
    return KubernetesWas.name


def _serving(said: _Said) -> ServingSettings:
    defaults = OperatorSettings().serving
    metrics = said.fields.metrics_addr or defaults.metrics_address
    probes = said.fields.probe_addr or defaults.probe_address
    parse_address(said.name("metricsAddr"), metrics)
    parse_address(said.name("probeAddr"), probes)
    return ServingSettings(metrics, probes)


def _client(said: _Said, given: Mapping[str, str]) -> ClientSettings:
    fields = said.fields
    return ClientSettings(
        kubeconfig=Path(given["kubeconfig"]) if given.get("kubeconfig") else None,
        qps=fields.qps or ClientSettings.qps,
        burst=_count(said, "burst", fields.burst) or ClientSettings.burst,
        use_kubernetes_proxy=fields.use_kubernetes_proxy or False,
    )


def _leadership(said: _Said, given: Mapping[str, str]) -> LeadershipSettings:
    fields = said.fields
    if fields.leader_election_namespace:
        _check_namespace(said.name("leaderElectionNamespace"), fields.leader_election_namespace)
    return LeadershipSettings(
        is_elected=fields.enable_leader_election is not False,
        lease_namespace=fields.leader_election_namespace or None,
        election=_election(parse_values(FLAGS, given)),
        covers=_coverage(said.name("watchNamespace"), fields.watch_namespace or ""),
        others=_others(given.get("other-installations", "")),
    )


def _others(text: str) -> Mapping[str, Coverage]:
    setting = "--other-installations"
    try:
        others = parse_others(text)
    except ValueError as exc:
        raise Misconfigured(setting, text, str(exc)) from exc
    for namespace in sorted({*others, *(name for covers in others.values() for name in covers.namespaces)}):
        _check_namespace(setting, namespace)
    return others


_LEASE_DURATION, _RENEW_DEADLINE, _RETRY_PERIOD = (
    "leader-elect-lease-duration",
    "leader-elect-renew-deadline",
    "leader-elect-retry-period",
)


def _election(values: Mapping[str, Any]) -> ElectionSettings:
    """The three durations, which must fit together, also where only one of them is given."""
    duration = values.get(_LEASE_DURATION, float(ElectionSettings.lease_duration))
    deadline = values.get(_RENEW_DEADLINE, ElectionSettings.renew_deadline)
    period = values.get(_RETRY_PERIOD, ElectionSettings.retry_period)
    if duration != int(duration):
        raise Misconfigured(f"--{_LEASE_DURATION}", f"{duration:g}s", "a Lease counts in whole seconds")
    if not deadline < duration:
        cure = f"it must be below --{_LEASE_DURATION}, which is {duration:g}s"
        raise Misconfigured(f"--{_RENEW_DEADLINE}", f"{deadline:g}s", cure)
    if not period * (1 + JITTER) < deadline:
        cure = f"{1 + JITTER:g} times it must be below --{_RENEW_DEADLINE}, which is {deadline:g}s"
        raise Misconfigured(f"--{_RETRY_PERIOD}", f"{period:g}s", cure)
    return ElectionSettings(int(duration), deadline, period)


def _coverage(setting: str, text: str) -> Coverage:
    covers = parse_coverage(text)
    for namespace in sorted(covers.namespaces):
        _check_namespace(setting, namespace)
    return covers


def _check_namespace(setting: str, text: str) -> None:
    if not is_dns_1123_label(text):
        raise Misconfigured(setting, text, "no namespace can be called so")


def _count(said: _Said, field: str, number: int | None) -> int:
    """A number of something; 0 where it was not said."""
    if number is not None and number < 0:
        raise Misconfigured(said.name(field), number, "use a number above 0, or 0 for the default")
    return number or 0


def _pods(fields: Configuration, variables: Variables) -> PodSettings:
    return PodSettings(
        head_sidecars=fields.head_sidecar_containers or (),
        worker_sidecars=fields.worker_sidecar_containers or (),
        default_env=fields.default_container_envs or (),
        default_annotations=fields.default_pod_annotations or {},
        default_labels=fields.default_pod_labels or {},
        injects_init_container=variables.is_not_off("ENABLE_INIT_CONTAINER_INJECTION"),
        injects_probes=variables.is_not_off("ENABLE_PROBES_INJECTION"),
        uses_login_shell=variables.is_on("ENABLE_LOGIN_SHELL"),
        has_fixed_head_name=variables.is_on("ENABLE_DETERMINISTIC_HEAD_POD_NAME"),
        cluster_domain=variables.text("CLUSTER_DOMAIN") or PodSettings.cluster_domain,
    )


def _history(said: _Said, variables: Variables) -> HistorySettings:
    """As it was said. What is missing or makes no sense is told about each object that asks for history: an operator
    that stopped for it would cost all others.
    """
    fields = msgspec.structs.asdict(said.fields.history)
    image = variables.text("RAYKEEPER_COLLECTOR_IMAGE")
    if image and f"{_HISTORY}collectorImage" not in said.by_flag:
        fields["collector_image"] = image
    fields["url"] = _history_url(said, variables)
    return HistorySettings(**fields)


def _history_url(said: _Said, variables: Variables) -> str:
    field, variable = f"{_HISTORY}url", "RAYKEEPER_HISTORY_URL"
    name, text = said.name(field), said.fields.history.url
    if field not in said.by_flag and (of_variable := variables.text(variable)):
        name, text = variable, of_variable
    if text and not text.startswith(("https://", "http://")):
        raise Misconfigured(name, text, "begin it with https:// or http://")
    return text.rstrip("/")


def _raycluster(variables: Variables) -> RayClusterSettings:
    default = RayClusterSettings.requeue_seconds
    return RayClusterSettings(
        requeue_seconds=variables.seconds("RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV", default, at_least=0),
        head_service_has_ip=variables.is_on("ENABLE_RAY_HEAD_CLUSTER_IP_SERVICE"),
        may_shrink_autoscaled_groups=variables.is_on("ENABLE_RANDOM_POD_DELETE"),
        cleans_up_redis=variables.is_not_off("ENABLE_GCS_FT_REDIS_CLEANUP"),
        uses_ingress_on_openshift=variables.is_on("USE_INGRESS_ON_OPENSHIFT"),
    )


def _rayjob(fields: Configuration, variables: Variables) -> RayJobSettings:
    grace, timeout = RayJobSettings.transition_grace_seconds, RayJobSettings.status_check_timeout_seconds
    deletes = variables.switch("DELETE_RAYJOB_CR_AFTER_JOB_FINISHES")
    return RayJobSettings(
        variables.seconds("RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS", grace),
        variables.seconds("RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS", timeout),
        deletes_finished=deletes if deletes is not None else fields.delete_ray_job_after_job_finishes or False,
        submitter_image=variables.text("RAYKEEPER_SUBMITTER_IMAGE") or "",
    )
