"""Services that a RayJob or RayService puts in front of a cluster of its own."""

from __future__ import annotations

from rayclusters.manifests import a_cluster
from raykeeper.api import labels
from raykeeper.api.meta import ObjectMeta
from raykeeper.api.rayjob import RayJob
from raykeeper.operator.shared.owner import Owner
from raykeeper.operator.shared.services import ServiceIdentity, desired_head_service, desired_serve_service

JOB = Owner.of(RayJob(ObjectMeta(name="job", namespace="default", uid="u-job")))
IDENTITY = ServiceIdentity(JOB, "job-head-svc", {labels.ORIGINATED_FROM_CRD: "RayJob", labels.NODE_TYPE: labels.HEAD})


def test_the_head_service_of_another_owner_has_its_name_and_labels_and_leads_to_the_same_pods() -> None:
    cluster = a_cluster().with_spec(headServiceAnnotations={"a": "1"}).build()
    own, theirs = desired_head_service(cluster), desired_head_service(cluster, IDENTITY)
    assert theirs["spec"] == own["spec"]
    assert theirs["metadata"] == {
        "name": "job-head-svc",
        "namespace": "default",
        "labels": dict(IDENTITY.labels),
        "ownerReferences": [JOB.reference()],
    }


def test_a_service_that_the_user_supplied_keeps_its_labels_under_another_owner() -> None:
    users = {"metadata": {"name": "mine", "labels": {"team": "ml", labels.NODE_TYPE: "x"}}}
    service = desired_head_service(a_cluster().with_head(headService=users).build(), IDENTITY)
    assert service["metadata"]["name"] == "job-head-svc"
    assert service["metadata"]["labels"] == {"team": "ml", **IDENTITY.labels}


def test_the_serve_service_of_another_owner_may_select_by_more_than_the_cluster() -> None:
    service = desired_serve_service(a_cluster().build(), IDENTITY, {labels.SERVE: "true"})
    assert service["metadata"]["ownerReferences"] == [JOB.reference()]
    assert service["spec"]["selector"] == {labels.CLUSTER: "rc", labels.SERVE: "true"}
