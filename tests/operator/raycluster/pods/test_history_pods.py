"""Pods of clusters that ask for history by an annotation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rayclusters.histories import IN_FOLDER, IN_S3, ON_ACK, OURS, WITH_PROVIDER, remembered, with_history
from rayclusters.manifests import ClusterBuilder, a_cluster
from rayclusters.ray_pods import (
    container_names,
    env,
    head_pod,
    init_container_names,
    named,
    pod_defaults,
    ray,
    worker_pod,
)
from raykeeper.api.meta import JSON
from raykeeper.operator.settings import HistorySettings

COLLECTOR = "ray-history-collector"


def head(cluster: ClusterBuilder, settings: HistorySettings = ON_ACK, *, native: bool = True) -> JSON:
    return head_pod(cluster, with_history(pod_defaults(native_sidecars=native), settings))


def worker(cluster: ClusterBuilder, settings: HistorySettings = ON_ACK) -> JSON:
    return worker_pod(cluster, with_history(pod_defaults(), settings))


def volume(pod: JSON, name: str) -> JSON:
    found: JSON = next(one for one in pod["spec"]["volumes"] if one["name"] == name)
    return found


def mounts(pod: JSON, container: str) -> dict[str, str]:
    return {mount["mountPath"]: mount["name"] for mount in named(pod, container)["volumeMounts"]}


def test_a_cluster_that_does_not_ask_is_what_it_was() -> None:
    assert head(a_cluster()) == head_pod(a_cluster())
    assert worker(a_cluster()) == worker_pod(a_cluster())


def test_settings_that_are_not_complete_leave_pods_as_they_were() -> None:
    incomplete = replace(ON_ACK, oss_bucket="")
    assert head(remembered(), incomplete) == head_pod(a_cluster())


@pytest.mark.parametrize("cluster", [remembered(), a_cluster().annotated(OURS)])
def test_either_annotation_brings_a_collector_into_every_pod(cluster: ClusterBuilder) -> None:
    for pod in (head(cluster), worker(cluster)):
        assert COLLECTOR in init_container_names(pod)
        assert named(pod, COLLECTOR)["restartPolicy"] == "Always"
        assert env(named(pod, COLLECTOR))["OSS_BUCKET"] == "history"
        assert env(ray(pod))["RAY_enable_ray_event"] == "true"
        assert pod["spec"]["serviceAccountName"] == "ray-historyserver-rc"
        assert pod["spec"]["terminationGracePeriodSeconds"] == 60


def test_before_native_sidecars_it_is_a_container_like_any_other() -> None:
    pod = head(remembered(), native=False)
    assert container_names(pod) == ["ray-head", COLLECTOR]
    assert "restartPolicy" not in named(pod, COLLECTOR)


def test_variables_of_events_that_the_user_set_are_kept() -> None:
    address = "RAY_DASHBOARD_AGGREGATOR_AGENT_EVENTS_EXPORT_ADDR"
    pod = head(remembered(a_cluster().with_head_env(address, "http://sink/v1/events")))
    assert [one["value"] for one in ray(pod)["env"] if one["name"] == address] == ["http://sink/v1/events"]


def test_the_spool_is_on_a_volume_that_user_code_does_not_have() -> None:
    pod = worker(remembered())
    assert mounts(pod, COLLECTOR)["/var/lib/raykeeper"] == "ray-history-spool"
    assert "ray-history-spool" not in mounts(pod, "workers").values()


def test_the_account_takes_the_place_of_the_users_and_of_the_autoscalers() -> None:
    cluster = remembered(a_cluster().autoscaled().with_head_pod(serviceAccountName="mine"))
    assert head(cluster)["spec"]["serviceAccountName"] == "ray-historyserver-rc"
    assert head(cluster, IN_S3)["spec"]["serviceAccountName"] == "mine"


@pytest.mark.parametrize(
    "own",
    [
        {"name": COLLECTOR, "image": "mine:1"},
        {"name": "collector", "image": "collector:v0.1.0", "command": ["collector", "--role=Head"]},
        {"name": "mine", "image": "collector:v0.1.0", "command": ["/usr/local/bin/collector"]},
    ],
)
def test_a_collector_in_the_users_template_stands_for_ours(own: JSON) -> None:
    containers = [{"name": "ray-head", "image": "ray"}, own]
    pod = head(remembered(a_cluster().with_head_pod(containers=containers)))
    assert container_names(pod) == ["ray-head", own["name"]]
    assert init_container_names(pod) == []
    pod = head(remembered(a_cluster().with_head_pod(initContainers=[own])))
    assert init_container_names(pod) == [own["name"]]


def test_the_collector_denies_root_unless_the_pod_says_that_it_is_root() -> None:
    assert named(head(remembered()), COLLECTOR)["securityContext"]["runAsNonRoot"] is True
    rooted = remembered(a_cluster().with_head_pod(securityContext={"runAsUser": 0}))
    assert "runAsNonRoot" not in named(head(rooted), COLLECTOR)["securityContext"]


def test_without_a_known_provider_the_webhook_of_ack_is_asked_for_the_role_of_the_collector_alone() -> None:
    pod = worker(remembered())
    assert pod["metadata"]["labels"]["pod-identity.alibabacloud.com/injection"] == "on"
    assert pod["metadata"]["annotations"]["pod-identity.alibabacloud.com/only-containers"] == COLLECTOR
    assert "ALIBABA_CLOUD_ROLE_ARN" not in env(named(pod, COLLECTOR))


def test_with_a_known_provider_the_token_is_mounted_for_the_collector_alone() -> None:
    pod = worker(remembered(), WITH_PROVIDER)
    variables = env(named(pod, COLLECTOR))
    assert variables["ALIBABA_CLOUD_ROLE_ARN"] == "acs:ram::1234567890:role/ray-history"
    assert variables["ALIBABA_CLOUD_OIDC_PROVIDER_ARN"] == WITH_PROVIDER.oidc_provider_arn
    folder, _, file = variables["ALIBABA_CLOUD_OIDC_TOKEN_FILE"].rpartition("/")
    assert mounts(pod, COLLECTOR)[folder] == "rrsa-oidc-token"
    assert "rrsa-oidc-token" not in mounts(pod, "workers").values()
    (source,) = volume(pod, "rrsa-oidc-token")["projected"]["sources"]
    assert source == {"serviceAccountToken": {"audience": "sts.aliyuncs.com", "expirationSeconds": 3600, "path": file}}
    assert "pod-identity.alibabacloud.com/injection" not in pod["metadata"]["labels"]


def test_labels_of_the_template_win_over_those_for_the_webhook() -> None:
    label = "pod-identity.alibabacloud.com/injection"
    cluster = a_cluster()
    cluster.manifest["spec"]["headGroupSpec"]["template"]["metadata"] = {"labels": {label: "off"}}
    assert head(remembered(cluster))["metadata"]["labels"][label] == "off"


def test_a_folder_is_a_store_on_a_volume_that_only_the_collector_has() -> None:
    pod = head(remembered(), IN_FOLDER)
    assert volume(pod, "ray-history-store")["nfs"] == {"server": "nas", "path": "/ray"}
    assert mounts(pod, COLLECTOR)["/var/history"] == "ray-history-store"
    assert "ray-history-store" not in mounts(pod, "ray-head").values()


def test_the_hook_stands_before_the_users_and_beside_the_last_poll() -> None:
    lifecycle = {"postStart": {"exec": {"command": ["mine", "a b"]}}}
    made = ray(head(remembered(a_cluster().with_head_container(lifecycle=lifecycle))))["lifecycle"]
    command = made["postStart"]["exec"]["command"]
    assert (command[:2], command[3:]) == (["/bin/sh", "-c"], ["sh", "mine", "a b"])
    assert made["preStop"]["httpGet"]["path"] == "/last-poll"
    assert "postStart" in ray(worker(remembered()))["lifecycle"]


def test_the_collector_of_a_spec_brings_no_hook() -> None:
    options = {"collectorOptions": {"image": "mine:1", "env": [{"name": "STORAGE_BACKEND", "value": "s3"}]}}
    pod = head(remembered(a_cluster().with_spec(historyServerOptions=options)))
    assert "postStart" not in ray(pod)["lifecycle"]
    assert "serviceAccountName" not in pod["spec"]
