"""What cannot be used stops the collector under the name by which it was given."""

from __future__ import annotations

import pytest

from raykeeper.collector.sources import read_settings
from raykeeper.errors import Misconfigured

REQUIRED = {"RAY_CLUSTER_NAME": "demo", "STORAGE_BACKEND": "s3"}

# The flag, its variable (if there is one), a text, and the beginning of the cure.
UNUSABLE = [
    ("--role", "RAY_ROLE", "driver", "use head or worker"),
    ("--ray-cluster-name", "RAY_CLUSTER_NAME", "My_Cluster", "use lower-case letters"),
    ("--ray-cluster-namespace", "RAY_CLUSTER_NAMESPACE", "a/b", "use lower-case letters"),
    ("--ray-cluster-id", "", "A", "use lower-case letters"),
    ("--enable-event-collector", "ENABLE_EVENT_COLLECTOR", "yes", "use true or false"),
    ("--enable-log-collector", "ENABLE_LOG_COLLECTOR", "off", "use true or false"),
    ("--enable-resource-collector", "ENABLE_RESOURCE_COLLECTOR", "10s", "use true or false"),
    ("--once", "", "maybe", "use true or false"),
    ("--events-port", "EVENTS_PORT", "events", "use a whole number"),
    ("--events-port", "EVENTS_PORT", "65536", "use a port from 0 to 65535"),
    ("--events-port", "EVENTS_PORT", "-1", "use a port from 0 to 65535"),
    ("--events-bind", "RAYKEEPER_EVENTS_BIND", "example.org", "use IP addresses"),
    ("--events-bind", "RAYKEEPER_EVENTS_BIND", ",", "name at least one IP address"),
    ("--metrics-addr", "RAYKEEPER_METRICS_ADDR", "8085", "use host:port"),
    ("--ray-dashboard-address", "RAY_DASHBOARD_ADDRESS", "ftp://head", "use an address"),
    ("--ray-dashboard-address", "RAY_DASHBOARD_ADDRESS", "http://", "use an address"),
    ("--additional-endpoints", "RAY_COLLECTOR_ADDITIONAL_ENDPOINTS", "timezone", "use paths that start with a slash"),
    ("--additional-endpoints", "RAY_COLLECTOR_ADDITIONAL_ENDPOINTS", "/a b", "use paths that start with a slash"),
    ("--additional-endpoints", "RAY_COLLECTOR_ADDITIONAL_ENDPOINTS", "/\N{DEGREE SIGN}", "use paths that start with"),
    ("--poll-interval", "RAY_COLLECTOR_POLL_INTERVAL", "30", "use a duration"),
    ("--event-rotation-interval", "RAY_COLLECTOR_EVENT_ROTATION_INTERVAL", "0s", "use a duration"),
    ("--event-max-file-size-mb", "RAY_COLLECTOR_EVENT_MAX_FILE_SIZE_MB", "10Mi", "use a whole number"),
    ("--event-max-disk-mb", "RAY_COLLECTOR_EVENT_MAX_DISK_MB", "0", "use a whole number of MB above 0"),
    ("--seal-age", "RAYKEEPER_SEAL_AGE", "-5s", "use a duration"),
    ("--idle-seal-age", "RAYKEEPER_IDLE_SEAL_AGE", "soon", "use a duration"),
    ("--seal-size-mb", "RAYKEEPER_SEAL_SIZE_MB", "big", "use a whole number"),
    ("--seal-size-mb", "RAYKEEPER_SEAL_SIZE_MB", "33", "use at most 32"),
    ("--user-log-interval", "RAYKEEPER_USER_LOG_INTERVAL", "5", "use a duration"),
    ("--component-log-interval", "RAYKEEPER_COMPONENT_LOG_INTERVAL", "1d", "use a duration"),
    ("--held-log-mb", "RAYKEEPER_HELD_LOG_MB", "-1", "use a whole number of MB above 0"),
    ("--grace-period", "RAYKEEPER_GRACE_PERIOD", "55", "use a duration"),
    ("--log-level", "RAYKEEPER_LOG_LEVEL", "loud", "use debug"),
    ("--zap-log-level", "", "loud", "use debug"),
    ("--log-stdout-encoder", "", "xml", "use json or console"),
    ("--log-file-encoder", "", "xml", "use json or console"),
]


def refusal(*arguments: str, **environment: str) -> str:
    with pytest.raises(Misconfigured) as refused:
        read_settings(arguments, REQUIRED | environment)
    return str(refused.value)


@pytest.mark.parametrize(("flag", "variable", "text", "cure"), UNUSABLE)
def test_a_flag_that_cannot_be_used_is_named(flag: str, variable: str, text: str, cure: str) -> None:
    assert refusal(f"{flag}={text}").startswith(f"{flag}={text!r} cannot be used: {cure}")


@pytest.mark.parametrize(("flag", "variable", "text", "cure"), [row for row in UNUSABLE if row[1]])
def test_a_variable_that_cannot_be_used_is_named(flag: str, variable: str, text: str, cure: str) -> None:
    assert refusal(**{variable: text}).startswith(f"{variable}={text!r} cannot be used: {cure}")


@pytest.mark.parametrize(
    ("variables", "complaint"),
    [
        ({"FQ_RAY_IP": "a b"}, "FQ_RAY_IP='a b' cannot be used: use an address"),
        ({"FQ_RAY_IP": "head:port"}, "FQ_RAY_IP='head:port' cannot be used: use an address"),
        ({"RAY_DASHBOARD_PORT": "0"}, "RAY_DASHBOARD_PORT='0' cannot be used: use a port from 1"),
        ({"RAY_AUTH_MODE": "token"}, "RAY_AUTH_MODE='token' cannot be used: there is no token; set RAY_AUTH_TOKEN"),
        ({"RAY_ENABLE_K8S_TOKEN_AUTH": "si"}, "RAY_ENABLE_K8S_TOKEN_AUTH='si' cannot be used: use true or false"),
        ({"OWNER_KIND": "deployment", "OWNER_NAME": "x"}, "OWNER_KIND='deployment' cannot be used: use rayjob"),
        ({"OWNER_KIND": "rayjob", "OWNER_NAME": "X"}, "OWNER_NAME='X' cannot be used: use lower-case letters"),
        ({"OWNER_KIND": "rayjob"}, "OWNER_KIND='rayjob' cannot be used: kind and name of an owner"),
        ({"OWNER_NAME": "nightly"}, "OWNER_NAME='nightly' cannot be used: kind and name of an owner"),
        (
            {"ENABLE_EVENT_COLLECTOR": "false", "ENABLE_LOG_COLLECTOR": "false"},
            "ENABLE_LOG_COLLECTOR='false' cannot be used: events or logs must be collected",
        ),
    ],
)
def test_a_variable_that_cannot_be_used_beside_the_others_is_named(variables: dict[str, str], complaint: str) -> None:
    assert refusal(**variables).startswith(complaint)


def test_without_a_cluster_name_flag_and_variable_are_named() -> None:
    complaint = refusal(RAY_CLUSTER_NAME="")
    assert complaint.startswith("--ray-cluster-name='' cannot be used")
    assert "RAY_CLUSTER_NAME" in complaint


def test_without_a_store_every_way_to_name_one_is_told() -> None:
    complaint = refusal(STORAGE_BACKEND="")
    assert complaint.startswith("--storage-backend='' cannot be used")
    assert "STORAGE_BACKEND" in complaint
    assert "--store-url" in complaint


def test_an_unknown_flag_is_refused_with_what_may_have_been_meant() -> None:
    complaint = refusal("--ray-cluster-nam=x")
    assert (
        complaint == "flag='--ray-cluster-nam' cannot be used: there is no such flag; did you mean --ray-cluster-name?"
    )


def test_a_token_that_stands_beside_something_unusable_is_not_told() -> None:
    assert "hunter2" not in refusal(RAY_AUTH_TOKEN="hunter2", EVENTS_PORT="x")
