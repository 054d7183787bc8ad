"""Parameters of KubeRay's Python client of V1: what is sent, and what is made of answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from google.protobuf import json_format

from raykeeper.apiserver.protos.cluster_pb2 import Cluster as ClusterMessage
from raykeeper.apiserver.protos.config_pb2 import ComputeTemplate
from raykeeper.apiserver.protos.job_submission_pb2 import RayJobSubmission
from raykeeper.client import Unavailable
from raykeeper.client.python_apiserver_client import params
from raykeeper.client.python_apiserver_client.params import (
    DEFAULT_HEAD_START_PARAMS,
    DEFAULT_WORKER_START_PARAMS,
    AccessMode,
    AutoscalerOptions,
    Capabilities,
    Cluster,
    ClusterEvent,
    ClusterSpec,
    ConfigMapVolume,
    EmptyDirVolume,
    Environment,
    EnvironmentVariables,
    EnvVarFrom,
    EnvVarSource,
    EphemeralVolume,
    HeadNodeSpec,
    HostPath,
    HostPathVolume,
    MountPropagationMode,
    PVCVolume,
    RayJobInfo,
    RayJobRequest,
    SecretVolume,
    SecurityContext,
    ServiceType,
    Template,
    Toleration,
    TolerationEffect,
    TolerationOperation,
    UpscalingMode,
    WorkerNodeSpec,
)

IMAGE = "rayproject/ray:2.46.0-py310"
TOLERATIONS = [
    Toleration("blah1", TolerationOperation.Exists, TolerationEffect.NoExecute),
    Toleration("blah2", TolerationOperation.Equal, TolerationEffect.PreferNoSchedule, value="value"),
]
VOLUMES = [
    HostPathVolume("host", "tmp/host", "source", HostPath.FILE, MountPropagationMode.HOSTTOCONTAINER),
    PVCVolume("pvc", "tmp/pvc", "claim", read_only=True, mount_propagation=MountPropagationMode.BIDIRECTIONAL),
    EphemeralVolume("ephemeral", "tmp/ephemeral", "5Gi", storage_class="fast", access_mode=AccessMode.RWX),
    EmptyDirVolume("empty", "tmp/empty", storage="1Gi"),
    ConfigMapVolume("map", "tmp/map", "my-map", items={"sample_code.py": "sample_code.py"}),
    SecretVolume("secret", "tmp/secret", "my-secret"),
]
SOURCE = EnvVarFrom(source=EnvVarSource.SECRET, name="my-secret", key="key")
VARIABLES = EnvironmentVariables(key_value={"key": "val"}, from_ref={"key_ref": SOURCE})
TEMPLATES = [
    Template("one", "team", cpu=1, memory=4, tolerations=TOLERATIONS),
    Template("two", "team", cpu=2, memory=8, gpu=1, gpu_accelerator="amd.com/gpu"),
    Template("three", "team", 2, 8, extended_resources={"vpc.amazonaws.com/efa": 32}, node_selector={"zone": "a"}),
]
HEAD = HeadNodeSpec(
    compute_template="template",
    image=IMAGE,
    ray_start_params=DEFAULT_HEAD_START_PARAMS,
    service_type=ServiceType.NodePort,
    enable_ingress=True,
    volumes=VOLUMES,
    service_account="ray",
    image_pull_secret="registry",
    environment=VARIABLES,
    annotations={"a_key": "a_val"},
    labels={"key": "value"},
    image_pull_policy="Always",
    security_context=SecurityContext(Capabilities(add=["SYS_PTRACE"], drop=["ALL"]), privileged=False),
)
WORKERS = WorkerNodeSpec(
    group_name="group",
    compute_template="template",
    image=IMAGE,
    max_replicas=2,
    replicas=2,
    min_replicas=2,
    ray_start_params=DEFAULT_WORKER_START_PARAMS,
    volumes=VOLUMES,
    service_account="ray",
    environment=VARIABLES,
    labels={"key": "value"},
    image_pull_policy="IfNotPresent",
)
AUTOSCALERS = [
    AutoscalerOptions(),
    AutoscalerOptions(
        UpscalingMode.Aggressive, 30, IMAGE, "Always", cpus="1.0", memory="64Gi", environment=VARIABLES, volumes=VOLUMES
    ),
]
SPECS = [
    ClusterSpec(HEAD),
    ClusterSpec(head_node=HEAD, worker_groups=[WORKERS, WORKERS], autoscaling_options=AUTOSCALERS[1]),
]
CLUSTERS = [
    Cluster("test", "default", "kuberay", "2.46.0", SPECS[0]),
    Cluster(
        name="test",
        namespace="default",
        user="kuberay",
        version="2.46.0",
        cluster_spec=SPECS[1],
        deployment_environment=Environment.PRODUCTION,
        annotations={"a": "b"},
        cluster_environment=VARIABLES,
    ),
]
EACH: dict[str, Sequence[Any]] = {
    "toleration": TOLERATIONS,
    "template": TEMPLATES,
    "volume": VOLUMES,
    "env_var_from": [SOURCE],
    "environment_variables": [VARIABLES, EnvironmentVariables(), EnvironmentVariables(key_value={"a": "b"})],
    "head_node_spec": [HEAD, HeadNodeSpec("template", IMAGE)],
    "worker_node_spec": [WORKERS],
    "autoscaling": AUTOSCALERS,
    "cluster_spec": SPECS,
    "cluster": CLUSTERS,
}


@pytest.mark.parametrize("kind", EACH)
def test_what_is_sent_is_read_back_as_the_same(kind: str) -> None:
    decode = getattr(params, f"{kind}_decoder")
    for one in EACH[kind]:
        again = decode(json.loads(json.dumps(one.to_dict())))
        assert (again, again.to_string()) == (one, one.to_string())


@pytest.mark.parametrize("template", TEMPLATES)
def test_every_value_of_a_template_has_a_name_that_the_server_knows(template: Template) -> None:
    json_format.ParseDict(template.to_dict(), ComputeTemplate())


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_every_value_of_a_cluster_has_a_name_that_the_server_knows(cluster: Cluster) -> None:
    json_format.ParseDict(cluster.to_dict(), ClusterMessage())


def test_every_value_of_a_submission_has_a_name_that_the_server_knows() -> None:
    request = RayJobRequest("python x.py", "id", "pip: []", {"a": "b"}, 0.5, 1.0, {"special": "2"})
    message = json_format.ParseDict(request.to_dict(), RayJobSubmission())
    assert (message.entrypoint_num_cpus, message.entrypoint_num_gpus) == (0.5, 1.0)
    assert dict(message.entrypoint_resources) == {"special": "2"}
    assert RayJobRequest("true").to_dict() == {"entrypoint": "true"}


def test_start_parameters_of_the_caller_win_over_the_defaults_which_stay_as_they_are() -> None:
    head = HeadNodeSpec("small", IMAGE, ray_start_params={"num-cpus": "4"})
    assert head.to_dict()["rayStartParams"] == {**DEFAULT_HEAD_START_PARAMS, "num-cpus": "4"}
    assert DEFAULT_HEAD_START_PARAMS["num-cpus"] == "0"
    assert WorkerNodeSpec("a", "small", IMAGE, 1).to_dict()["rayStartParams"] == DEFAULT_WORKER_START_PARAMS


@pytest.mark.parametrize(("least", "wanted", "most"), [(2, 1, 3), (0, 4, 3)])
def test_numbers_of_workers_that_contradict_each_other_are_refused(least: int, wanted: int, most: int) -> None:
    with pytest.raises(RuntimeError, match=f"between {least} and {most}, not {wanted}"):
        WorkerNodeSpec("a", "small", IMAGE, max_replicas=most, replicas=wanted, min_replicas=least)


def test_what_a_server_answers_is_never_refused_for_its_numbers() -> None:
    """A group that the autoscaler has not brought to its minimum yet."""
    group = params.worker_node_spec_decoder({"groupName": "a", "computeTemplate": "small", "minReplicas": 1})
    assert (group.replicas, group.min_replicas, group.max_replicas, group.ray_start_params) == (0, 1, 0, None)


def test_zeros_that_a_server_leaves_out_are_read_as_zeros() -> None:
    volume = params.volume_decoder({"name": "data", "mountPath": "/data", "source": "claim"})
    assert volume == PVCVolume("data", "/data", "claim")
    assert params.env_var_from_decoder({"name": "settings", "key": "a"}).source is EnvVarSource.CONFIGMAP
    assert params.templates_decoder({}) == []
    assert params.clusters_decoder({}) == []


def test_attributes_have_kuberays_names_beside_those_of_the_arguments() -> None:
    cluster = CLUSTERS[1]
    assert (cluster.environment, cluster.envs) == (Environment.PRODUCTION, VARIABLES)
    assert VARIABLES.key_val == {"key": "val"}
    assert (VOLUMES[1].readonly, VOLUMES[1].volume_type) == (True, 0)  # type: ignore[attr-defined]


def test_an_answer_about_a_cluster_has_what_the_server_said() -> None:
    event = {"id": "e", "name": "test-e", "createdAt": "now", "reason": "Created", "type": "Normal", "count": 2}
    answer: dict[str, Any] = {
        **CLUSTERS[0].to_dict(),
        "createdAt": "2026-11-18T00:00:00Z",
        "clusterState": "ready",
        "events": [event],
        "serviceEndpoint": {"dashboard": "8265"},
    }
    cluster = params.cluster_decoder(answer)
    assert (cluster.cluster_status, cluster.service_endpoint) == ("ready", {"dashboard": "8265"})
    assert cluster.events is not None
    assert (cluster.events[0].created_at, cluster.events[0].count) == ("now", 2)
    assert "reason = Created" in cluster.to_string()
    assert cluster.to_dict() == CLUSTERS[0].to_dict()
    assert ClusterEvent({"first_timestamp": "then"}).first_timestamp == "then"


def test_an_autoscaler_that_is_off_has_no_options() -> None:
    spec = {"headGroupSpec": {"computeTemplate": "small"}, "autoscalerOptions": {"image": IMAGE}}
    assert params.cluster_spec_decoder(spec).autoscaling_options is None
    switched_on = params.cluster_spec_decoder({"headGroupSpec": {}, "enableInTreeAutoscaling": True})
    assert switched_on.autoscaling_options == AutoscalerOptions()


def test_a_job_is_shown_with_its_times_error_and_metadata() -> None:
    answer = {"submissionId": "a", "startTime": "1699442662879", "errorType": "X", "metadata": {"owner": "batch"}}
    info = RayJobInfo(answer)
    assert (info.start_time, info.end_time, info.error_type) == (1699442662879, 0, "X")
    shown = "submission id = a, start time = 2023-11-08 11:24:22, error type = X, metadata = {'owner': 'batch'}"
    assert info.to_string() == shown


@pytest.mark.parametrize(
    ("decoder", "answer"),
    [
        ("volume_decoder", {"volumeType": 9}),
        ("volume_decoder", {"volumeType": 1, "hostPathType": "x"}),
        ("cluster_decoder", {"clusterSpec": []}),
        ("cluster_decoder", {"clusterSpec": {"headGroupSpec": {"serviceType": "Pigeon"}}}),
        ("template_decoder", {"cpu": "many"}),
        ("head_node_spec_decoder", {"volumes": 4}),
    ],
)
def test_an_answer_that_makes_no_sense_is_said_to_make_none(decoder: str, answer: Any) -> None:
    with pytest.raises(Unavailable, match="the API server"):
        getattr(params, decoder)(answer)
