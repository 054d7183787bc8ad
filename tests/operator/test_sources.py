"""Where a setting comes from: each flag, variable and field of the file has its effect, and one order decides."""

from __future__ import annotations

import dataclasses
import operator
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from raykeeper.errors import Misconfigured
from raykeeper.kube.leader.installations import Coverage
from raykeeper.operator.configuration import API_VERSION, KIND, Configuration, HistoryConfiguration
from raykeeper.operator.environment import VARIABLES
from raykeeper.operator.flags import FLAGS
from raykeeper.operator.gates import Gate
from raykeeper.operator.settings import HistorySettings, OperatorSettings
from raykeeper.operator.sources import read_settings

TEAMS = Coverage(frozenset({"team-a", "team-b"}))
SIDECAR = {"name": "log-shipper", "image": "shipper"}

# By flag: arguments, the setting they end up in, and its value.
BY_FLAG: dict[str, tuple[list[str], str, Any]] = {
    "metrics-addr": (["--metrics-addr=127.0.0.1:1"], "serving.metrics_address", "127.0.0.1:1"),
    "health-probe-bind-address": (["--health-probe-bind-address=:2"], "serving.probe_address", ":2"),
    "enable-leader-election": (["--enable-leader-election=false"], "leadership.is_elected", False),
    "leader-election-namespace": (["--leader-election-namespace=ops"], "leadership.lease_namespace", "ops"),
    "other-installations": (
        ["--other-installations=kuberay-a=team-a,team-b;kuberay-c=*"],
        "leadership.others",
        {"kuberay-a": Coverage(frozenset({"team-a", "team-b"})), "kuberay-c": Coverage()},
    ),
    "leader-elect-lease-duration": (["--leader-elect-lease-duration=137s"], "leadership.election.lease_duration", 137),
    "leader-elect-renew-deadline": (
        ["--leader-elect-renew-deadline=12.5s"],
        "leadership.election.renew_deadline",
        12.5,
    ),
    "leader-elect-retry-period": (["--leader-elect-retry-period=500ms"], "leadership.election.retry_period", 0.5),
    "reconcile-concurrency": (["--reconcile-concurrency=4"], "reconcile_concurrency", 4),
    "watch-namespace": (["--watch-namespace", "team-a, team-b,"], "leadership.covers", TEAMS),
    "log-file-path": (["--log-file-path=/logs/x"], "logs.file_path", Path("/logs/x")),
    "log-file-encoder": (["--log-file-encoder=console"], "logs.file_encoder", "console"),
    "log-stdout-encoder": (["--log-stdout-encoder=console"], "logs.stdout_encoder", "console"),
    "use-kubernetes-proxy": (["--use-kubernetes-proxy"], "client.use_kubernetes_proxy", True),
    "enable-metrics": (["--enable-metrics"], "has_object_metrics", True),
    "qps": (["--qps=75.5"], "client.qps", 75.5),
    "burst": (["--burst=150"], "client.burst", 150),
    "kubeconfig": (["--kubeconfig=/k"], "client.kubeconfig", Path("/k")),
    "feature-gates": (["--feature-gates=RayClusterHistoryServer=true"], "gates.switched", {Gate.HISTORY_SERVER: True}),
    "zap-log-level": (["--zap-log-level=error"], "logs.level", "error"),
    "zap-devel": (["--zap-devel"], "logs.level", "debug"),
    "zap-encoder": (["--zap-encoder=console"], "ignored", ("--zap-encoder",)),
    "zap-stacktrace-level": (["--zap-stacktrace-level=info"], "ignored", ("--zap-stacktrace-level",)),
    "zap-time-encoding": (["--zap-time-encoding=epoch"], "ignored", ("--zap-time-encoding",)),
    "history-collector-image": (["--history-collector-image=ours:1"], "history.collector_image", "ours:1"),
    "history-collector-image-pull-policy": (
        ["--history-collector-image-pull-policy=Always"],
        "history.collector_image_pull_policy",
        "Always",
    ),
    "history-collector-resources": (
        ['--history-collector-resources={"limits":{"cpu":"1"}}'],
        "history.collector_resources",
        {"limits": {"cpu": "1"}},
    ),
    "history-store-url": (["--history-store-url=s3://b"], "history.store_url", "s3://b"),
    "history-store-volume": (
        ['--history-store-volume={"hostPath":{"path":"/h"}}'],
        "history.store_volume",
        {"hostPath": {"path": "/h"}},
    ),
    "history-env": (
        ['--history-env=[{"name":"A","value":"1, 2"}]'],
        "history.env",
        ({"name": "A", "value": "1, 2"},),
    ),
    "history-secret-name": (["--history-secret-name=keys"], "history.secret_name", "keys"),
    "service-account-prefix": (["--service-account-prefix=rhs"], "history.service_account_prefix", "rhs"),
    "service-account-annotations": (
        ['--service-account-annotations={"a/b":"c"}'],
        "history.service_account_annotations",
        {"a/b": "c"},
    ),
    "history-url": (["--history-url=https://h/"], "history.url", "https://h"),
    "callback-service-name": (["--callback-service-name=h:80"], "history.callback_service_name", "h:80"),
    "cloud-role-name": (["--cloud-role-name=role"], "history.cloud_role_name", "role"),
    "oidc-provider-arn": (["--oidc-provider-arn=arn"], "history.oidc_provider_arn", "arn"),
    "oss-bucket": (["--oss-bucket=b"], "history.oss_bucket", "b"),
    "oss-endpoint": (["--oss-endpoint=e"], "history.oss_endpoint", "e"),
    "oss-region": (["--oss-region=r"], "history.oss_region", "r"),
    "oss-history-server-root-dir": (["--oss-history-server-root-dir=log"], "history.oss_root_dir", "log"),
    "forced-cluster-upgrade": (["--forced-cluster-upgrade"], "ignored", ("--forced-cluster-upgrade",)),
}
TESTED_BY_THEMSELVES = {"config", "batch-scheduler", "enable-batch-scheduler"}

# By field of the file: what is written there, the setting it ends up in, and its value.
BY_FIELD: dict[str, tuple[Any, str, Any]] = {
    "metricsAddr": (":1", "serving.metrics_address", ":1"),
    "probeAddr": (":2", "serving.probe_address", ":2"),
    "enableLeaderElection": (False, "leadership.is_elected", False),
    "leaderElectionNamespace": ("ops", "leadership.lease_namespace", "ops"),
    "reconcileConcurrency": (4, "reconcile_concurrency", 4),
    "watchNamespace": ("team-a,team-b", "leadership.covers", TEAMS),
    "logFile": ("/logs/x", "logs.file_path", Path("/logs/x")),
    "logFileEncoder": ("console", "logs.file_encoder", "console"),
    "logStdoutEncoder": ("console", "logs.stdout_encoder", "console"),
    "headSidecarContainers": ([SIDECAR], "pods.head_sidecars", (SIDECAR,)),
    "workerSidecarContainers": ([SIDECAR], "pods.worker_sidecars", (SIDECAR,)),
    "defaultContainerEnvs": ([{"name": "A"}], "pods.default_env", ({"name": "A"},)),
    "defaultPodAnnotations": ({"a": "b"}, "pods.default_annotations", {"a": "b"}),
    "defaultPodLabels": ({"a": "b"}, "pods.default_labels", {"a": "b"}),
    "useKubernetesProxy": (True, "client.use_kubernetes_proxy", True),
    "deleteRayJobAfterJobFinishes": (True, "rayjob.deletes_finished", True),
    "enableMetrics": (True, "has_object_metrics", True),
    "qps": (75.5, "client.qps", 75.5),
    "burst": (150, "client.burst", 150),
    "history": (
        {
            "collectorImage": "ours:1",
            "env": [{"name": "A"}],
            "ossBucket": "b",
            "ossEndPoint": "e",
            "ossHistoryServerRootDir": "log",
            "serviceAccountAnnotations": {"a": "b"},
        },
        "history",
        HistorySettings(
            collector_image="ours:1",
            env=({"name": "A"},),
            oss_bucket="b",
            oss_endpoint="e",
            oss_root_dir="log",
            service_account_annotations={"a": "b"},
        ),
    ),
}

# By variable: its text, the setting it ends up in, and its value.
BY_VARIABLE: dict[str, tuple[str, str, Any]] = {
    "CLUSTER_DOMAIN": ("example.org", "pods.cluster_domain", "example.org"),
    "DELETE_RAYJOB_CR_AFTER_JOB_FINISHES": ("true", "rayjob.deletes_finished", True),
    "ENABLE_DETERMINISTIC_HEAD_POD_NAME": ("true", "pods.has_fixed_head_name", True),
    "ENABLE_GCS_FT_REDIS_CLEANUP": ("FALSE", "raycluster.cleans_up_redis", False),
    "ENABLE_INIT_CONTAINER_INJECTION": ("false", "pods.injects_init_container", False),
    "ENABLE_LOGIN_SHELL": ("True", "pods.uses_login_shell", True),
    "ENABLE_PROBES_INJECTION": ("false", "pods.injects_probes", False),
    "ENABLE_RANDOM_POD_DELETE": ("true", "raycluster.may_shrink_autoscaled_groups", True),
    "ENABLE_RAY_HEAD_CLUSTER_IP_SERVICE": ("true", "raycluster.head_service_has_ip", True),
    "ENABLE_ZERO_DOWNTIME": ("false", "rayservice.has_zero_downtime", False),
    "RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV": ("0", "raycluster.requeue_seconds", 0),
    "RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS": ("61", "rayjob.transition_grace_seconds", 61),
    "RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS": ("62", "rayjob.status_check_timeout_seconds", 62),
    "RAYKEEPER_COLLECTOR_IMAGE": ("ours:1", "history.collector_image", "ours:1"),
    "RAYKEEPER_HISTORY_URL": ("https://history/base/", "history.url", "https://history/base"),
    "RAYKEEPER_SUBMITTER_IMAGE": ("ours:1", "rayjob.submitter_image", "ours:1"),
    "RAYKEEPER_LOG_LEVEL": ("warning", "logs.level", "warning"),
    "USE_INGRESS_ON_OPENSHIFT": ("true", "raycluster.uses_ingress_on_openshift", True),
}


def setting(settings: OperatorSettings, path: str) -> Any:
    return operator.attrgetter(path)(settings)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


def write(file: Path, **fields: Any) -> str:
    """Fill the file; the flag that names it."""
    file.write_text(yaml.safe_dump({"apiVersion": API_VERSION, "kind": KIND, **fields}))
    return f"--config={file}"


def test_no_flag_variable_or_field_is_left_out_of_these_tables() -> None:
    fields = {field.encode_name for field in msgspec.structs.fields(Configuration)}
    assert BY_FLAG.keys() | TESTED_BY_THEMSELVES == {flag.name for flag in FLAGS}
    assert BY_FIELD.keys() == fields - {"apiVersion", "kind", "batchScheduler", "enableBatchScheduler"}
    assert BY_VARIABLE.keys() == VARIABLES.keys() - {"ENABLE_WEBHOOKS"}


def test_without_a_word_from_the_user_the_defaults_apply() -> None:
    assert read_settings([], {}) == OperatorSettings()


@pytest.mark.parametrize("flag", BY_FLAG)
def test_a_flag_sets_one_thing(flag: str) -> None:
    arguments, path, value = BY_FLAG[flag]
    assert setting(read_settings(arguments, {}), path) == value
    assert setting(OperatorSettings(), path) != value


@pytest.mark.parametrize("flag", FLAGS, ids=lambda flag: flag.name)
def test_the_default_that_the_help_shows_is_the_default(flag: Any) -> None:
    assert not flag.default or read_settings([f"{flag.spelling}={flag.default}"], {}) == OperatorSettings()


@pytest.mark.parametrize("field", BY_FIELD)
def test_a_field_of_the_file_sets_one_thing(field: str, file: Path) -> None:
    written, path, value = BY_FIELD[field]
    assert setting(read_settings([write(file, **{field: written})], {}), path) == value
    assert setting(OperatorSettings(), path) != value


@pytest.mark.parametrize("variable", BY_VARIABLE)
def test_a_variable_sets_one_thing(variable: str) -> None:
    text, path, value = BY_VARIABLE[variable]
    assert setting(read_settings([], {variable: text}), path) == value
    assert setting(OperatorSettings(), path) != value


@pytest.mark.parametrize("variable", VARIABLES)
def test_an_empty_variable_counts_as_not_set(variable: str) -> None:
    assert read_settings([], {variable: ""}) == OperatorSettings()


def test_an_empty_file_and_gos_zero_values_mean_the_defaults(file: Path) -> None:
    zeros = {"metricsAddr": "", "reconcileConcurrency": 0, "qps": 0, "burst": 0, "watchNamespace": "", "logFile": ""}
    assert read_settings([write(file)], {}) == OperatorSettings()
    assert read_settings([write(file, **zeros)], {}) == OperatorSettings()


def test_a_negative_qps_is_no_limit_as_in_client_go() -> None:
    assert read_settings(["--qps=-1"], {}).client.qps == -1


def test_beside_a_file_flags_that_it_has_a_field_for_are_ignored_and_named(file: Path) -> None:
    settings = read_settings([write(file, burst=7), "--qps=5", "--burst=6", "--enable-metrics"], {})
    assert (settings.client.qps, settings.client.burst, settings.has_object_metrics) == (500.0, 7, False)
    assert settings.ignored == ("--qps", "--burst", "--enable-metrics")


def test_beside_a_file_flags_without_a_field_count(file: Path) -> None:
    flags = ["--feature-gates=RayClusterHistoryServer=true", "--zap-log-level=debug", "--kubeconfig=/k"]
    settings = read_settings([write(file), *flags], {})
    assert settings.gates.is_on(Gate.HISTORY_SERVER)
    assert (settings.logs.level, settings.client.kubeconfig, settings.ignored) == ("debug", Path("/k"), ())


def test_the_encoders_flags_beat_the_files_fields_which_kuberay_ignores(file: Path) -> None:
    config = write(file, logStdoutEncoder="console", logFileEncoder="console")
    logs = read_settings([config, "--log-file-encoder=json"], {}).logs
    assert (logs.stdout_encoder, logs.file_encoder) == ("console", "json")


def test_a_variable_beats_the_file(file: Path) -> None:
    config = write(file, deleteRayJobAfterJobFinishes=True)
    assert read_settings([config], {}).rayjob.deletes_finished
    assert not read_settings([config], {"DELETE_RAYJOB_CR_AFTER_JOB_FINISHES": "false"}).rayjob.deletes_finished


def test_the_collectors_image_is_the_flags_then_the_variables_then_the_files(file: Path) -> None:
    variable = {"RAYKEEPER_COLLECTOR_IMAGE": "variable:1"}
    config = write(file, history={"collectorImage": "file:1"})
    assert read_settings(["--history-collector-image=flag:1"], variable).history.collector_image == "flag:1"
    assert read_settings([config], variable).history.collector_image == "variable:1"
    assert read_settings([config], {}).history.collector_image == "file:1"


def test_every_setting_of_history_is_a_field_of_the_file() -> None:
    assert {field.name for field in msgspec.structs.fields(HistoryConfiguration)} == {
        field.name for field in dataclasses.fields(HistorySettings)
    }
    flags = {flag.field.removeprefix("history.") for flag in FLAGS if flag.field.startswith("history.")}
    assert flags == {field.encode_name for field in msgspec.structs.fields(HistoryConfiguration)}


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--history-env={}", "--history-env='{}' cannot be used: use one JSON list"),
        ("--history-env=[", "it is no JSON"),
        ('--history-env=["A"]', "Expected `object`, got `str`"),
        ('--history-env=[{"value":"1"}]', "--history-env[0] has no name"),
        ("--history-collector-resources=[]", "use one JSON object"),
        ('--service-account-annotations={"a":1}', "Expected `str`, got `int`"),
    ],
)
def test_a_value_of_the_wrong_shape_stops_the_operator_by_its_flag(argument: str, message: str) -> None:
    with pytest.raises(Misconfigured, match=re.escape(message)) as refused:
        read_settings([argument], {})
    assert refused.value.setting == argument.partition("=")[0]


@pytest.mark.parametrize(
    ("arguments", "variables", "level"),
    [
        (["--zap-log-level=info", "--zap-devel"], {"RAYKEEPER_LOG_LEVEL": "error"}, "info"),
        (["--zap-devel"], {"RAYKEEPER_LOG_LEVEL": "error"}, "error"),
        (["--zap-log-level=3"], {}, "debug"),
        (["--zap-log-level=warn"], {}, "warning"),
        (["--zap-log-level=panic"], {}, "critical"),
        (["--zap-devel=false"], {}, "info"),
    ],
)
def test_the_log_level_is_the_flag_then_the_variable_then_debug_in_development(
    arguments: list[str], variables: dict[str, str], level: str
) -> None:
    assert read_settings(arguments, variables).logs.level == level


@pytest.mark.parametrize(
    ("argument", "complaint"),
    [
        ("--metrics-addr=8080", "--metrics-addr='8080' cannot be used: use host:port"),
        ("--health-probe-bind-address=:99999", "--health-probe-bind-address=':99999' cannot be used: use host:port"),
        ("--reconcile-concurrency=-1", "--reconcile-concurrency=-1 cannot be used: use a number above 0"),
        ("--burst=-1", "--burst=-1 cannot be used: use a number above 0"),
        ("--watch-namespace=team-a,Team_B", "--watch-namespace='Team_B' cannot be used: no namespace"),
        ("--leader-election-namespace=a/b", "--leader-election-namespace='a/b' cannot be used: no namespace"),
        ("--log-stdout-encoder=xml", "--log-stdout-encoder='xml' cannot be used: use json or console"),
        ("--log-file-encoder=xml", "--log-file-encoder='xml' cannot be used: use json or console"),
        ("--zap-log-level=loud", "--zap-log-level='loud' cannot be used: use debug"),
        ("--zap-log-level=0", "--zap-log-level='0' cannot be used: use debug"),
        ("--batch-scheduler=slurm", "--batch-scheduler='slurm' cannot be used: there is no such scheduler"),
        ("--batch-scheduler=default", "--batch-scheduler='default' cannot be used: there is no such scheduler"),
    ],
)
def test_a_flag_that_cannot_be_used_is_named(argument: str, complaint: str) -> None:
    with pytest.raises(Misconfigured) as refusal:
        read_settings([argument], {})
    assert str(refusal.value).startswith(complaint)


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("probeAddr", "8082", "'8082' cannot be used: use host:port"),
        ("burst", -1, "-1 cannot be used: use a number above 0"),
        ("watchNamespace", "A", "'A' cannot be used: no namespace"),
        ("logStdoutEncoder", "xml", "'xml' cannot be used: use json or console"),
        ("batchScheduler", "slurm", "'slurm' cannot be used: there is no such scheduler"),
    ],
)
def test_a_field_that_cannot_be_used_is_named_with_its_file(field: str, value: Any, complaint: str, file: Path) -> None:
    with pytest.raises(Misconfigured) as refusal:
        read_settings([write(file, **{field: value})], {})
    assert str(refusal.value).startswith(f"{field} in {file}={complaint}")


@pytest.mark.parametrize(
    ("variable", "text", "complaint"),
    [
        ("ENABLE_LOGIN_SHELL", "1", "use true or false"),
        ("ENABLE_PROBES_INJECTION", "off", "use true or false"),
        ("RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV", "5m", "use a whole number"),
        ("RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV", "-1", "use a number of seconds above -1"),
        ("RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS", "0", "use a number of seconds above 0"),
        ("RAYKEEPER_LOG_LEVEL", "loud", "use debug, info, warning, error or panic, or a number above 0"),
        ("RAYKEEPER_HISTORY_URL", "history:8080", "begin it with https:// or http://"),
        ("ENABLE_WEBHOOKS", "true", "this version has no webhooks"),
    ],
)
def test_a_variable_that_cannot_be_used_is_named(variable: str, text: str, complaint: str) -> None:
    with pytest.raises(Misconfigured) as refusal:
        read_settings([], {variable: text})
    assert str(refusal.value) == f"{variable}={text!r} cannot be used: {complaint}"


@pytest.mark.parametrize("name", ["volcano", "yunikorn", "kai-scheduler", "scheduler-plugins"])
def test_a_scheduler_is_named_by_its_flag_or_in_the_file(name: str, file: Path) -> None:
    assert read_settings([f"--batch-scheduler={name}"], {}).batch_scheduler == name
    assert read_settings([write(file, batchScheduler=name)], {}).batch_scheduler == name


def test_the_deprecated_spelling_means_volcano(file: Path) -> None:
    assert read_settings(["--enable-batch-scheduler"], {}).batch_scheduler == "volcano"
    assert read_settings([write(file, enableBatchScheduler=True)], {}).batch_scheduler == "volcano"


def test_a_gate_asks_for_the_scheduler_of_kubernetes_itself() -> None:
    assert read_settings(["--feature-gates=KubernetesWAS=true"], {}).batch_scheduler == "kubernetes-was"
    with pytest.raises(Misconfigured, match="--batch-scheduler='kubernetes-was' cannot be used: there is no such"):
        read_settings(["--batch-scheduler=kubernetes-was"], {})


@pytest.mark.parametrize("other", ["--batch-scheduler=yunikorn", "--enable-batch-scheduler"])
def test_the_gate_beside_another_scheduler_is_refused(other: str) -> None:
    with pytest.raises(Misconfigured, match="'KubernetesWAS=true' cannot be used: --batch-scheduler asks for"):
        read_settings(["--feature-gates=KubernetesWAS=true", other], {})


def test_two_ways_to_name_a_scheduler_are_one_too_many() -> None:
    with pytest.raises(
        Misconfigured, match="--enable-batch-scheduler=True cannot be used: --batch-scheduler='volcano'"
    ):
        read_settings(["--enable-batch-scheduler", "--batch-scheduler=volcano"], {})


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["--leader-elect-lease-duration=10s"],
            "--leader-elect-renew-deadline='10s' cannot be used: it must be below --leader-elect-lease-duration",
        ),
        (
            ["--leader-elect-renew-deadline=2s"],
            "--leader-elect-retry-period='2s' cannot be used: 1.2 times it must be below --leader-elect-renew-deadline",
        ),
        (["--leader-elect-lease-duration=15.5s"], "a Lease counts in whole seconds"),
        (["--leader-elect-retry-period=soon"], "--leader-elect-retry-period='soon' cannot be used: use a duration"),
    ],
)
def test_election_times_that_do_not_fit_together_are_refused_by_name(arguments: list[str], sentence: str) -> None:
    with pytest.raises(Misconfigured) as refusal:
        read_settings(arguments, {})
    assert sentence in str(refusal.value)


@pytest.mark.parametrize("text", ["kuberay-a", "kuberay-a=", "=team-a", "kuberay-a=Team_A", "a=b;kuberay_c=d"])
def test_other_installations_that_cannot_be_read_are_refused(text: str) -> None:
    with pytest.raises(Misconfigured, match="--other-installations="):
        read_settings([f"--other-installations={text}"], {})
