"""Where a setting of the collector comes from: each flag and variable has its effect, and one order decides."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Any

import pytest

from raykeeper.collector.environment import VARIABLES
from raykeeper.collector.environment import WITHOUT_EFFECT as VARIABLES_WITHOUT_EFFECT
from raykeeper.collector.flags import FLAGS, WITHOUT_EFFECT
from raykeeper.collector.parts import make_identity
from raykeeper.collector.settings import BucketSettings, ClusterSettings, CollectorSettings
from raykeeper.collector.sources import read_settings
from raykeeper.errors import Misconfigured
from raykeeper.settings.flags import Flag

MIB = 1024 * 1024

REQUIRED = {"RAY_CLUSTER_NAME": "demo", "STORAGE_BACKEND": "s3", "KUBERNETES_SERVICE_HOST": "10.0.0.1"}
"""A pod whose operator said what must be said."""
DEFAULTS = CollectorSettings(ClusterSettings("demo"), BucketSettings(backend="s3"))

PATHS = "/api/v0/placement_groups?detail=1&limit=10000, /timezone,"

# By flag: its text, the setting it ends up in, and its value. A variable that means the same must do the same.
BY_FLAG: dict[str, tuple[str, str, Any]] = {
    "role": ("HEAD", "node.role", "head"),
    "storage-backend": ("AzureBlob", "bucket.backend", "azureblob"),
    "storage-backend-config-path": ("/etc/store.json", "bucket.config_file", Path("/etc/store.json")),
    "storage-root-dir": ("ray/history", "bucket.root_dir", "ray/history"),
    "ray-cluster-name": ("raycluster.v2", "cluster.name", "raycluster.v2"),
    "ray-cluster-namespace": ("team-a", "cluster.namespace", "team-a"),
    "enable-event-collector": ("false", "sink.is_on", False),
    "enable-log-collector": ("0", "log_files.is_on", False),
    "enable-resource-collector": ("false", "samples.is_on", False),
    "events-port": ("9000", "sink.port", 9000),
    "ray-dashboard-address": ("https://head:8443/ray/", "head.dashboard_address", "https://head:8443/ray"),
    "event-data-dir": ("/spool", "spool.folder", Path("/spool")),
    "event-rotation-interval": ("2s", "spool.seal_seconds", 2.0),
    "event-max-file-size-mb": ("4", "spool.seal_bytes", 4 * MIB),
    "event-max-disk-mb": ("1024", "spool.max_bytes", 1024 * MIB),
    "events-bind": ("0.0.0.0, ::", "sink.hosts", ("0.0.0.0", "::")),
    "metrics-addr": ("127.0.0.1:0", "metrics_address", "127.0.0.1:0"),
    "ray-tmp-root": ("/scratch/ray", "node.ray_tmp_root", Path("/scratch/ray")),
    "poll-interval": ("1m30s", "head.poll_seconds", 90.0),
    "additional-endpoints": (
        PATHS,
        "head.additional_endpoints",
        ("/api/v0/placement_groups?detail=1&limit=10000", "/timezone"),
    ),
    "seal-age": ("1s", "spool.seal_seconds", 1.0),
    "idle-seal-age": ("2m", "spool.idle_seal_seconds", 120.0),
    "seal-size-mb": ("16", "spool.seal_bytes", 16 * MIB),
    "user-log-interval": ("500ms", "log_files.user_seconds", 0.5),
    "component-log-interval": ("5m", "log_files.component_seconds", 300.0),
    "held-log-mb": ("64", "log_files.max_held_bytes", 64 * MIB),
    "grace-period": ("55s", "grace_seconds", 55.0),
    "once": ("true", "runs_once", True),
    "log-level": ("debug", "logs.level", "debug"),
    "log-stdout-encoder": ("console", "logs.stdout_encoder", "console"),
    "log-file-path": ("/logs/x", "logs.file_path", Path("/logs/x")),
    "log-file-encoder": ("console", "logs.file_encoder", "console"),
    "runtime-class-name": ("GCS", "bucket.backend", "gcs"),
    "runtime-class-config-path": (
        "/var/collector-config/data",
        "bucket.config_file",
        Path("/var/collector-config/data"),
    ),
    "ray-root-dir": ("log", "bucket.root_dir", "log"),
    "ray-cluster-id": ("team-b", "cluster.namespace", "team-b"),
    "zap-log-level": ("warn", "logs.level", "warning"),
    "event-compression-enabled": ("true", "ignored", ("--event-compression-enabled",)),
    "log-batching": ("1000", "ignored", ("--log-batching",)),
    "push-interval": ("1m", "ignored", ("--push-interval",)),
}
TOLD_BY_THEMSELVES = {"owner-kind", "owner-name", "store-url"}
FACTS_AND_SECRETS = {
    "FQ_RAY_IP",
    "HOSTNAME",
    "KUBERNETES_SERVICE_HOST",
    "POD_IP",
    "POD_NAME",
    "RAY_AUTH_MODE",
    "RAY_AUTH_TOKEN",
    "RAY_AUTH_TOKEN_PATH",
    "RAY_CLUSTER_UID",
    "RAY_DASHBOARD_PORT",
    "RAY_ENABLE_K8S_TOKEN_AUTH",
}
WITH_VARIABLE = [flag for flag in FLAGS if flag.variable and flag.name not in TOLD_BY_THEMSELVES]


def read(*arguments: str, **environment: str) -> CollectorSettings:
    """The settings in a pod that says the least it may."""
    return read_settings(arguments, REQUIRED | environment)


def setting(settings: CollectorSettings, path: str) -> Any:
    return operator.attrgetter(path)(settings)


def refusal(*arguments: str, **environment: str) -> str:
    with pytest.raises(Misconfigured) as refused:
        read(*arguments, **environment)
    return str(refused.value)


def test_no_flag_or_variable_is_left_out_of_these_tables() -> None:
    assert BY_FLAG.keys() | TOLD_BY_THEMSELVES == {flag.name for flag in FLAGS}
    by_flag = {flag.variable for flag in FLAGS if flag.variable}
    assert VARIABLES.keys() == by_flag | FACTS_AND_SECRETS | VARIABLES_WITHOUT_EFFECT.keys()


def test_with_a_cluster_and_a_backend_alone_the_defaults_apply() -> None:
    assert read() == DEFAULTS


@pytest.mark.parametrize("name", BY_FLAG)
def test_a_flag_sets_one_thing(name: str) -> None:
    text, path, value = BY_FLAG[name]
    assert setting(read(f"--{name}={text}"), path) == value
    assert setting(DEFAULTS, path) != value


@pytest.mark.parametrize("flag", WITH_VARIABLE, ids=lambda flag: flag.variable)
def test_a_variable_sets_what_its_flag_sets(flag: Flag) -> None:
    text, path, value = BY_FLAG[flag.name]
    by_variable = (flag.variable,) if flag.name in WITHOUT_EFFECT else value
    assert setting(read(**{flag.variable: text}), path) == by_variable


@pytest.mark.parametrize(
    "flag", [flag for flag in WITH_VARIABLE if flag.name not in WITHOUT_EFFECT], ids=lambda flag: flag.name
)
def test_a_flag_beats_its_variable_which_in_kuberay_is_the_other_way_round(flag: Flag) -> None:
    text, path, value = BY_FLAG[flag.name]
    unusable = "\N{NO ENTRY}"  # it would be refused, were it looked at
    assert setting(read(f"--{flag.name}={text}", **{flag.variable: unusable}), path) == value


@pytest.mark.parametrize("flag", FLAGS, ids=lambda flag: flag.name)
def test_the_default_that_the_help_shows_is_the_default(flag: Flag) -> None:
    assert flag.help.endswith(".")
    assert not flag.default or read(f"{flag.spelling}={flag.default}") == DEFAULTS


@pytest.mark.parametrize("variable", sorted(VARIABLES.keys() - REQUIRED.keys()))
def test_an_empty_variable_counts_as_not_set(variable: str) -> None:
    assert read(**{variable: ""}) == DEFAULTS


def test_where_both_spellings_of_a_flag_are_used_that_of_today_counts() -> None:
    assert read("--storage-root-dir=new", "--ray-root-dir=old").bucket.root_dir == "new"
    assert read("--ray-root-dir=old", STORAGE_ROOT_DIR="new").bucket.root_dir == "old"
    assert read(RAY_ROOT_DIR="old", STORAGE_ROOT_DIR="new").bucket.root_dir == "new"


@pytest.mark.parametrize("variable", VARIABLES_WITHOUT_EFFECT)
def test_a_variable_without_effect_is_named_so_that_nobody_waits_for_one(variable: str) -> None:
    assert read(**{variable: "whatever"}).ignored == (variable,)


def test_a_dead_option_is_accepted_whatever_its_value() -> None:
    settings = read("--log-batching=many", "--push-interval", "1m", LOG_BATCHING="x", PUSH_INTERVAL="y")
    assert settings.ignored == ("--log-batching", "--push-interval")


def test_the_namespace_is_local_outside_kubernetes_unless_somebody_says_otherwise() -> None:
    outside = {"RAY_CLUSTER_NAME": "demo", "STORAGE_BACKEND": "s3"}
    assert read_settings([], outside).cluster.namespace == "local"
    assert read_settings(["--ray-cluster-namespace=lab"], outside).cluster.namespace == "lab"


def test_a_one_time_capture_is_the_heads_unless_somebody_says_otherwise() -> None:
    assert read("--once").node.role == "head"
    assert read("--once", "--role=worker").node.role == "worker"
    assert read("--once=false").node.role == "worker"


def test_only_the_collector_of_a_head_that_ships_logs_asks_the_dashboard() -> None:
    assert read("--role=head").polls_head
    assert not read("--role=worker").polls_head
    assert not read("--role=head", "--enable-log-collector=false").polls_head


def test_the_spool_is_in_rays_folder_wherever_that_is() -> None:
    assert read(RAY_TMP_ROOT="/scratch/ray").spool.folder == Path("/scratch/ray/event-data")
    assert read(RAY_TMP_ROOT="/scratch/ray", RAY_COLLECTOR_EVENT_DATA_DIR="/spool").spool.folder == Path("/spool")


def test_kuberays_rotation_bounds_a_segment_from_above_and_never_delays_it() -> None:
    strict = read("--event-rotation-interval=2s", "--event-max-file-size-mb=1").spool
    assert (strict.seal_seconds, strict.idle_seal_seconds, strict.seal_bytes) == (2.0, 2.0, MIB)
    lax = read("--event-rotation-interval=1h", "--event-max-file-size-mb=1000").spool
    assert (lax.seal_seconds, lax.idle_seal_seconds, lax.seal_bytes) == (5.0, 90.0, 8 * MIB)


def test_an_idle_segment_is_never_sealed_sooner_than_a_busy_one() -> None:
    assert read("--seal-age=2m").spool.idle_seal_seconds == 120.0


def test_several_segments_fit_into_the_spool_however_small_it_is() -> None:
    assert read("--event-max-disk-mb=8").spool.seal_bytes == 2 * MIB


@pytest.mark.parametrize(("kind", "stored"), [("rayjob", "RayJob"), ("RayJob", "RayJob"), ("RAYSERVICE", "RayService")])
def test_an_owner_is_kind_and_name(kind: str, stored: str) -> None:
    by_variable = read(OWNER_KIND=kind, OWNER_NAME="nightly").cluster
    assert (by_variable.owner_kind, by_variable.owner_name) == (stored, "nightly")
    assert read(f"--owner-kind={kind}", "--owner-name=nightly").cluster == by_variable


def test_the_records_carry_the_uid_of_the_raycluster_which_tells_it_from_others_of_its_name() -> None:
    assert make_identity(read(RAY_CLUSTER_UID="7d1f")).cluster_uid == "7d1f"
    assert make_identity(read()).cluster_uid == ""


def test_an_owner_that_is_left_empty_is_none() -> None:
    assert read("--owner-kind=", "--owner-name=") == DEFAULTS


URL = "s3://history/ray?region=eu-central-1"


def test_a_store_url_stands_for_backend_prefix_and_file() -> None:
    environment = {"RAY_CLUSTER_NAME": "demo"}
    assert read_settings([f"--store-url={URL}"], environment).bucket == BucketSettings(url=URL)
    assert read_settings([], environment | {"RAYKEEPER_STORE_URL": URL}).bucket == BucketSettings(url=URL)


def test_of_url_and_backend_the_flag_counts() -> None:
    assert read(f"--store-url={URL}", STORAGE_ROOT_DIR="log").bucket == BucketSettings(url=URL)
    assert read("--storage-backend=gcs", RAYKEEPER_STORE_URL=URL).bucket == BucketSettings(backend="gcs")


@pytest.mark.parametrize(
    ("arguments", "environment", "culprit"),
    [
        ([f"--store-url={URL}", "--storage-backend=s3"], {}, "--storage-backend='s3'"),
        ([f"--store-url={URL}", "--ray-root-dir=log"], {}, "--ray-root-dir='log'"),
        ([], {"RAYKEEPER_STORE_URL": URL}, "STORAGE_BACKEND='s3'"),
    ],
)
def test_a_store_that_is_said_twice_by_the_same_means_is_refused(
    arguments: list[str], environment: dict[str, str], culprit: str
) -> None:
    assert refusal(*arguments, **environment).startswith(f"{culprit} cannot be used: ")


def test_names_and_address_of_pod_and_head_are_not_required_but_kept() -> None:
    settings = read(POD_NAME="demo-head-x1", HOSTNAME="ignored", POD_IP="10.1.2.3", FQ_RAY_IP="demo-head-svc.ns.svc")
    assert (settings.node.pod_name, settings.node.pod_ip) == ("demo-head-x1", "10.1.2.3")
    assert settings.head.head_address == "http://demo-head-svc.ns.svc:8265"
    assert read(HOSTNAME="demo-head-x1").node.pod_name == "demo-head-x1"
    assert read(FQ_RAY_IP="head", RAY_DASHBOARD_PORT="9265").head.head_address == "http://head:9265"


def test_the_projected_token_comes_before_the_static_one_and_that_before_a_file() -> None:
    projected = read(RAY_ENABLE_K8S_TOKEN_AUTH="true", RAY_AUTH_TOKEN="static", RAY_AUTH_MODE="token").head.auth
    assert (projected.token, projected.token_file) == ("", Path("/var/run/secrets/ray.io/serviceaccount/token"))
    static = read(RAY_AUTH_TOKEN="static", RAY_AUTH_TOKEN_PATH="/token").head.auth
    assert (static.token, static.token_file) == ("static", None)
    file = read(RAY_AUTH_TOKEN_PATH="/token", RAY_AUTH_MODE="Token").head.auth
    assert (file.mode, file.token, file.token_file) == ("token", "", Path("/token"))


def test_the_line_break_that_a_secret_was_made_with_is_no_part_of_the_token() -> None:
    assert read(RAY_AUTH_TOKEN=" static\n").head.auth.token == "static"
    assert refusal(RAY_AUTH_TOKEN=" \n", RAY_AUTH_MODE="token").startswith("RAY_AUTH_MODE='token' cannot be used")
    assert refusal(RAY_AUTH_TOKEN="hunter\n2") == "RAY_AUTH_TOKEN='…' cannot be used: a token is one line of text"


def test_the_token_is_not_shown_with_the_settings() -> None:
    assert "hunter2" not in repr(read(RAY_AUTH_TOKEN="hunter2"))
