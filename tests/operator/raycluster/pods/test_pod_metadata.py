"""Names, labels and annotations of Ray pods."""

from __future__ import annotations

from typing import Any

import pytest

from rayclusters.manifests import UID, ClusterBuilder, a_cluster
from rayclusters.ray_pods import RANDOM_END, VERSION, head_pod, pod_defaults, worker_pod
from raykeeper.api import labels
from raykeeper.api.meta import JSON
from raykeeper.operator.raycluster.actions import Slot


def labels_of(pod: JSON) -> dict[str, str]:
    found: dict[str, str] = pod["metadata"]["labels"]
    return found


def annotations_of(pod: JSON) -> dict[str, str]:
    found: dict[str, str] = pod["metadata"]["annotations"]
    return found


def with_head_metadata(**metadata: Any) -> ClusterBuilder:
    spec = {"containers": [{"name": "ray", "image": "i"}]}
    return a_cluster().with_head(template={"metadata": metadata, "spec": spec})


def with_worker_metadata(**metadata: Any) -> ClusterBuilder:
    spec = {"containers": [{"name": "ray", "image": "i"}]}
    return a_cluster().with_workers(template={"metadata": metadata, "spec": spec})


def for_service() -> ClusterBuilder:
    return a_cluster().labelled({labels.ORIGINATED_FROM_CRD: "RayService"})


def test_a_head_is_named_after_its_cluster_with_a_random_end() -> None:
    metadata = head_pod(a_cluster())["metadata"]
    assert metadata["name"] == f"rc-head-{RANDOM_END}"
    assert metadata["generateName"] == "rc-head-"


def test_a_worker_is_named_after_its_cluster_and_group_with_a_random_end() -> None:
    metadata = worker_pod(a_cluster().with_workers("small"))["metadata"]
    assert metadata["name"] == f"rc-small-worker-{RANDOM_END}"
    assert metadata["generateName"] == "rc-small-worker-"


def test_the_longest_names_still_fit_a_host_name() -> None:
    cluster = a_cluster().named("c" * 53).with_workers("g" * 40)
    assert len(head_pod(cluster)["metadata"]["name"]) <= 63
    assert len(worker_pod(cluster)["metadata"]["name"]) == 63


def test_a_head_may_have_a_fixed_name() -> None:
    metadata = head_pod(with_head_metadata(name="mine"), pod_defaults(has_fixed_head_name=True))["metadata"]
    assert metadata["name"] == "rc-head"
    assert "generateName" not in metadata


def test_a_head_may_have_the_templates_name() -> None:
    assert head_pod(with_head_metadata(name="mine"))["metadata"]["name"] == "mine"


def test_workers_do_not_share_the_templates_name() -> None:
    metadata = worker_pod(with_worker_metadata(name="mine", generateName="mine-"))["metadata"]
    assert metadata["name"] == f"rc-workers-worker-{RANDOM_END}"
    assert metadata["generateName"] == "rc-workers-worker-"


def test_a_pod_is_in_its_clusters_namespace_and_controlled_by_it() -> None:
    metadata = worker_pod(with_worker_metadata(namespace="elsewhere").named("rc", "here"))["metadata"]
    assert metadata["namespace"] == "here"
    assert metadata["ownerReferences"] == [
        {
            "apiVersion": "ray.io/v1",
            "kind": "RayCluster",
            "name": "rc",
            "uid": UID,
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]


def test_a_head_has_these_labels() -> None:
    assert labels_of(head_pod(a_cluster())) == {
        "ray.io/is-ray-node": "yes",
        "ray.io/cluster": "rc",
        "ray.io/node-type": "head",
        "ray.io/group": "headgroup",
        "ray.io/identifier": "rc-head",
        "app.kubernetes.io/name": "kuberay",
        "app.kubernetes.io/created-by": "kuberay-operator",
    }


def test_a_worker_has_these_labels() -> None:
    assert labels_of(worker_pod(a_cluster().with_workers("small"), slot=None)) == {
        "ray.io/is-ray-node": "yes",
        "ray.io/cluster": "rc",
        "ray.io/node-type": "worker",
        "ray.io/group": "small",
        "ray.io/identifier": "rc-worker",
        "app.kubernetes.io/name": "kuberay",
        "app.kubernetes.io/created-by": "kuberay-operator",
    }


def test_a_worker_carries_the_index_of_its_replica() -> None:
    assert labels_of(worker_pod(a_cluster(), slot=Slot(3)))["ray.io/worker-group-replica-index"] == "3"


def test_a_host_carries_its_place_in_its_replica() -> None:
    found = labels_of(worker_pod(a_cluster(), slot=Slot(3, "tpu-x7b2k", 1)))
    assert found["ray.io/worker-group-replica-index"] == "3"
    assert found["ray.io/worker-group-replica-name"] == "tpu-x7b2k"
    assert found["ray.io/replica-host-index"] == "1"


@pytest.mark.parametrize("name", ["ray.io/identifier", "app.kubernetes.io/name", "ray.io/is-ray-node", "mine"])
def test_users_may_override_what_people_read(name: str) -> None:
    assert labels_of(head_pod(with_head_metadata(labels={name: "x"})))[name] == "x"


@pytest.mark.parametrize("name", ["ray.io/cluster", "ray.io/node-type", "ray.io/group"])
def test_users_cannot_override_what_pods_are_found_by(name: str) -> None:
    cluster = with_worker_metadata(labels={name: "x"})
    assert labels_of(worker_pod(cluster))[name] != "x"
    assert labels_of(worker_pod(a_cluster().with_workers(labels={name: "x"})))[name] != "x"


def test_labels_of_the_ray_node_win_over_those_of_the_template() -> None:
    cluster = with_head_metadata(labels={"a": "template", "b": "template"}).with_head(labels={"a": "group"})
    found = labels_of(head_pod(cluster))
    assert (found["a"], found["b"]) == ("group", "template")


def test_a_service_gets_its_requests_from_workers_first() -> None:
    assert labels_of(head_pod(for_service()))["ray.io/serve"] == "false"
    assert labels_of(worker_pod(for_service()))["ray.io/serve"] == "true"
    assert "ray.io/serve" not in labels_of(worker_pod(a_cluster()))


@pytest.mark.parametrize("pod_of", [head_pod, worker_pod])
def test_the_operators_labels_and_annotations_fill_gaps_alone(pod_of: Any) -> None:
    defaults = pod_defaults(
        default_labels={"team": "op", "ray.io/cluster": "op", "ray.io/identifier": "op"},
        default_annotations={"note": "op", "ray.io/ft-enabled": "op", "mine": "op"},
    )
    template = {"metadata": {"annotations": {"mine": "me"}}, "spec": {"containers": [{"name": "ray", "image": "i"}]}}
    pod = pod_of(a_cluster().with_head(template=template).with_workers(template=template), defaults)
    assert labels_of(pod)["team"] == "op"
    assert labels_of(pod)["ray.io/cluster"] == "rc"
    assert labels_of(pod)["ray.io/identifier"].startswith("rc-")
    assert annotations_of(pod)["note"] == "op"
    assert annotations_of(pod)["mine"] == "me"


def test_a_head_tells_its_version_and_the_hash_of_its_spec() -> None:
    found = annotations_of(head_pod(a_cluster()))
    assert found["ray.io/kuberay-version"] == VERSION
    assert len(found["ray.io/upgrade-strategy-recreate-hash"]) == 32
    assert found["ray.io/ft-enabled"] == "false"


def test_a_worker_has_no_annotations_of_the_operators() -> None:
    assert annotations_of(worker_pod(a_cluster())) == {}


@pytest.mark.parametrize(("value", "is_copied"), [("true", True), ("True", True), ("false", False)])
def test_a_user_who_overwrites_the_command_is_seen_on_the_pods(value: str, is_copied: bool) -> None:
    cluster = a_cluster().annotated({"ray.io/overwrite-container-cmd": value})
    for pod in (head_pod(cluster), worker_pod(cluster)):
        assert annotations_of(pod).get("ray.io/overwrite-container-cmd") == ("true" if is_copied else None)


def test_other_annotations_of_the_cluster_stay_there() -> None:
    assert "note" not in annotations_of(head_pod(a_cluster().annotated({"note": "x"})))


def test_finalizers_and_unknown_fields_of_the_template_survive() -> None:
    metadata = head_pod(with_head_metadata(finalizers=["a/b"], newField=1))["metadata"]
    assert metadata["finalizers"] == ["a/b"]
    assert metadata["newField"] == 1
