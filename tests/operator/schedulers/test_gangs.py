"""What each batch scheduler makes of RayClusters and RayJobs, in golden files: objects, labels, annotations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from raykeeper.api import labels
from raykeeper.api.meta import JSON
from raykeeper.api.raycluster import RayCluster, RayClusterSpec
from raykeeper.api.rayjob import RayJob
from raykeeper.operator.rayjob.cluster import desired_cluster
from raykeeper.operator.rayjob.gang import job_gang, plan_job_gang
from raykeeper.operator.rayjob.submitter.container import SubmitterDefaults
from raykeeper.operator.schedulers.choice import SCHEDULERS, scheduler_named
from raykeeper.operator.schedulers.gang import Gang
from raykeeper.operator.schedulers.interface import SUBMITTER_GROUP, THE_CLUSTER, Scheduler, Wait
from raykeeper.operator.schedulers.pod_groups import PROTECTION, plan_gang
from raykeeper.operator.schedulers.volcano import GANGS, HIGHEST_TIER, QUEUE, TOPOLOGY_MODE
from raykeeper.operator.shared.children.keys import ChildKey, child_key
from raykeeper.operator.shared.children.plan import CreateChild, PatchChild, ReplaceChild
from raykeeper.operator.shared.owner import Owner
from support.gangs import CLUSTERS, JOBS, MARKS, PLAIN, a_cluster, a_group, a_job, a_spec
from support.golden import AssertGolden, files_without_test
from support.rayjob_facts import a_cluster as known_cluster

GOLDEN: Final = Path(__file__).parent / "golden"
NAMES: Final = [name for name in SCHEDULERS if name]
BARE: Final[JSON] = {"metadata": {"name": "pod"}, "spec": {"containers": []}}
DEFAULTS: Final = SubmitterDefaults()


def gang_of(cluster: RayCluster) -> Gang:
    return Gang(Owner.of(cluster), cluster.spec)


def of_cluster(scheduler: Scheduler, cluster: RayCluster) -> JSON:
    gang, groups = gang_of(cluster), [group.group_name for group in cluster.spec.worker_group_specs]
    return {
        "objects": list(scheduler.objects(gang)),
        "suspended": list(scheduler.at_rest(Gang(gang.owner))),
        "pods": {group: readable(scheduler.dress(gang, BARE, group)) for group in (labels.HEAD_GROUP, *groups)},
    }


def of_job(scheduler: Scheduler, job: RayJob) -> JSON:
    gang = job_gang(job, DEFAULTS)
    return {
        "objects": list(scheduler.objects(gang)),
        "ended": list(scheduler.at_rest(Gang(gang.owner, job.spec.ray_cluster_spec))),
        "submitter": readable(scheduler.dress(gang, BARE, SUBMITTER_GROUP)),
        "cluster": readable(scheduler.dress(gang, {"metadata": {"name": "train-fghij"}}, THE_CLUSTER)),
    }


def readable(item: JSON) -> JSON:
    """With the JSON in annotations as data."""
    annotations = item["metadata"].get("annotations", {})
    data = {key: msgspec.json.decode(text) if text.startswith("[") else text for key, text in annotations.items()}
    return {**item, "metadata": {**item["metadata"], **({"annotations": data} if data else {})}}


@pytest.mark.parametrize("name", NAMES)
def test_each_scheduler_gets_what_its_golden_file_shows(name: str, assert_golden: AssertGolden) -> None:
    scheduler = scheduler_named(name)
    cases: dict[str, Any] = {
        f"cluster {case}": of_cluster(scheduler, a_cluster(spec)) for case, spec in CLUSTERS.items()
    }
    cases |= {f"job {case}": of_job(scheduler, a_job(fields)) for case, fields in JOBS.items()}
    cases["cluster without labels"] = of_cluster(scheduler, a_cluster(PLAIN, labels={}))
    jobs_cluster = a_job(JOBS["kubernetes-job"])
    body = desired_cluster(jobs_cluster, PLAIN, DEFAULTS)
    dressed = scheduler.dress(job_gang(jobs_cluster, DEFAULTS), body, THE_CLUSTER)
    dressed["metadata"] |= {"uid": "cluster-uid"}
    cases["cluster of a job"] = of_cluster(scheduler, msgspec.convert(dressed, RayCluster))
    origin = {labels.ORIGINATED_FROM_CR_NAME: "llm", labels.ORIGINATED_FROM_CRD: "RayService"}
    cases["cluster of a service"] = of_cluster(scheduler, a_cluster(PLAIN, name="llm-abcde", labels=MARKS | origin))
    assert_golden(GOLDEN / f"{name}.yaml", cases)


def test_every_golden_file_is_of_a_scheduler() -> None:
    assert files_without_test(GOLDEN, NAMES) == []


@pytest.mark.parametrize("name", SCHEDULERS)
def test_what_is_dressed_is_not_changed(name: str) -> None:
    pod: JSON = {"metadata": {"labels": {"a": "b"}}, "spec": {"schedulerName": "mine"}}
    before = msgspec.json.encode(pod)
    dressed = scheduler_named(name).dress(gang_of(a_cluster(PLAIN)), pod, labels.HEAD_GROUP)
    assert msgspec.json.encode(pod) == before
    assert dressed["metadata"]["labels"]["a"] == "b"


def volcano_pod_group(cluster: RayCluster) -> JSON:
    (found,) = scheduler_named("volcano").objects(gang_of(cluster))
    return found


def test_a_gang_is_counted_within_the_limits_of_its_groups_members_and_resources_alike() -> None:
    spec = volcano_pod_group(a_cluster(CLUSTERS["beyond-its-limits"]))["spec"]
    assert spec["minMember"] == 1 + 8
    assert spec["minResources"]["nvidia.com/gpu"] == "8"


def test_an_autoscaled_gang_is_the_least_that_there_can_be_with_the_autoscaler_beside_the_head() -> None:
    spec = volcano_pod_group(a_cluster(CLUSTERS["autoscaled"]))["spec"]
    assert spec["minMember"] == 1 + 2
    assert spec["minResources"]["cpu"] == "5500m"  # 1 and the autoscaler's 500m for the head, 2 for each worker


def test_a_pod_group_that_says_the_same_in_other_words_is_left_alone() -> None:
    cluster = a_cluster(PLAIN)
    stored = volcano_pod_group(cluster)
    stored["metadata"]["uid"] = "pg"
    stored["spec"]["minResources"] |= {"cpu": "7000m", "memory": f"{14 * 2**30}"}
    stored["spec"]["minTaskMember"] = {"set-by": 1}
    assert plan_gang(scheduler_named("volcano"), gang_of(cluster), {child_key(stored): stored}, is_at_rest=False) == []


def test_a_pod_group_follows_the_size_the_queue_and_the_priority_of_its_cluster() -> None:
    stored = volcano_pod_group(a_cluster(PLAIN))
    stored["metadata"]["uid"] = "pg"
    larger = a_cluster(a_spec(a_group("gpu", 5)), labels=MARKS | {QUEUE: "other", labels.PRIORITY_CLASS_NAME: "low"})
    (action,) = plan_gang(scheduler_named("volcano"), gang_of(larger), {child_key(stored): stored}, is_at_rest=False)
    assert isinstance(action, PatchChild)
    spec = action.patch["spec"]
    assert (spec["minMember"], spec["queue"], spec["priorityClassName"]) == (6, "other", "low")
    assert spec["minResources"]["nvidia.com/gpu"] == "5"


def test_a_resource_that_is_no_longer_asked_for_goes_from_the_pod_group() -> None:
    stored = volcano_pod_group(a_cluster(PLAIN))
    stored["metadata"]["uid"] = "pg"
    alone = gang_of(a_cluster(CLUSTERS["head-alone"]))
    (action,) = plan_gang(scheduler_named("volcano"), alone, {child_key(stored): stored}, is_at_rest=False)
    assert isinstance(action, PatchChild)
    assert action.patch["spec"]["minResources"] == {"cpu": "1", "memory": "2Gi", "nvidia.com/gpu": None}


def test_a_suspended_cluster_leaves_its_place_in_the_queue_and_makes_no_pod_group() -> None:
    cluster = a_cluster(PLAIN)
    stored = volcano_pod_group(cluster)
    stored["metadata"]["uid"] = "pg"
    at_rest = Gang(Owner.of(cluster))
    (action,) = plan_gang(scheduler_named("volcano"), at_rest, {child_key(stored): stored}, is_at_rest=True)
    assert isinstance(action, PatchChild)
    assert action.patch["spec"]["minMember"] == 0
    assert set(action.patch["spec"]["minResources"].values()) == {None}
    assert plan_gang(scheduler_named("volcano"), at_rest, {}, is_at_rest=True) == []


@pytest.mark.parametrize("mode", ["K8sJobMode", "HTTPMode", "SidecarMode", "InteractiveMode"])
def test_a_jobs_pod_group_lives_through_all_its_attempts(mode: str) -> None:
    volcano = scheduler_named("volcano")
    fields = {"submissionMode": mode}
    (made,) = plan_job_gang(a_job(fields), "Initializing", None, volcano, {}, DEFAULTS)
    assert isinstance(made, CreateChild)
    stored = {**made.body, "metadata": {**made.body["metadata"], "uid": "pg"}}
    found = {ChildKey("PodGroup", "ray-train-pg"): stored}
    assert child_key(stored) in found

    def members(state: str, *, has_cluster: bool) -> int:
        cluster = replace(known_cluster(), spec=a_cluster(PLAIN).spec) if has_cluster else None
        actions = plan_job_gang(a_job(fields, state), state, cluster, volcano, found, DEFAULTS)
        wanted = [action.patch["spec"].get("minMember", 4) for action in actions if isinstance(action, PatchChild)]
        assert len(wanted) == len(actions)
        return wanted[0] if wanted else 4

    assert members("Running", has_cluster=True) == 4
    assert members("Retrying", has_cluster=False) == 0
    assert members("Suspended", has_cluster=False) == 0
    assert members("Complete", has_cluster=True) == 4
    assert members("Failed", has_cluster=False) == 0
    assert plan_job_gang(a_job(fields, "Complete"), "Complete", None, volcano, {}, DEFAULTS) == []


@pytest.mark.parametrize("mode", ["K8sJobMode", "HTTPMode", "SidecarMode", "InteractiveMode"])
@pytest.mark.parametrize("edited", [a_spec(a_group("gpu", 16, maxReplicas=16)), None])
def test_the_gang_of_an_attempt_is_the_cluster_that_it_has_though_the_spec_was_edited(
    mode: str, edited: JSON | None
) -> None:
    volcano, began = scheduler_named("volcano"), a_job({"submissionMode": mode})
    body = desired_cluster(began, msgspec.to_builtins(began.spec.ray_cluster_spec), DEFAULTS)
    cluster = replace(known_cluster(), spec=msgspec.convert(body["spec"], RayClusterSpec), submission_mode=mode)
    (made,) = plan_job_gang(began, "Initializing", None, volcano, {}, DEFAULTS)
    assert isinstance(made, CreateChild)
    found = {child_key(made.body): made.body}
    job = a_job({"submissionMode": "K8sJobMode", "rayClusterSpec": edited}, "Running")
    assert plan_job_gang(job, "Running", cluster, volcano, found, DEFAULTS) == []
    later = plan_job_gang(job, "Initializing", replace(cluster, is_going=True), volcano, found, DEFAULTS)
    members = [action.patch["spec"]["minMember"] for action in later if isinstance(action, PatchChild)]
    assert members == ([17] if edited else [0]), "the next attempt has the present spec"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("state", ["Initializing", "Running", "Complete", "Suspended"])
def test_a_job_on_anothers_cluster_starts_without_a_gang(name: str, state: str) -> None:
    job = a_job(JOBS["selected-cluster"], state)
    assert plan_job_gang(job, state, known_cluster(), scheduler_named(name), {}, DEFAULTS) == []
    submitter = scheduler_named(name).dress(job_gang(job, DEFAULTS), BARE, SUBMITTER_GROUP)
    assert "annotations" not in submitter["metadata"]
    assert "schedulingGroup" not in submitter["spec"]
    assert ("schedulerName" in submitter["spec"]) is (name != "kubernetes-was")  # the default one is its own


def test_yunikorn_is_told_of_no_group_that_may_be_empty() -> None:
    """YuniKorn refuses the whole list for one of them."""
    cluster = a_cluster(CLUSTERS["autoscaled"])
    pods = of_cluster(scheduler_named("yunikorn"), cluster)["pods"]
    groups = pods["headgroup"]["metadata"]["annotations"]["yunikorn.apache.org/task-groups"]
    assert {group["name"]: group["minMember"] for group in groups} == {"headgroup": 1, "gpu": 2}
    assert "yunikorn.apache.org/task-group-name" not in pods["spot"]["metadata"]["annotations"]


def test_a_gang_of_yunikorn_that_names_no_application_has_one_of_its_own() -> None:
    """YuniKorn has one application for all others of a namespace, and the first gang in it counts."""
    yunikorn, marks = scheduler_named("yunikorn"), {labels.GANG_SCHEDULING_ENABLED: "true"}

    def application(gang: Gang, group: str = labels.HEAD_GROUP) -> str:
        metadata: JSON = yunikorn.dress(gang, BARE, group)["metadata"]
        return str(metadata.get("labels", {}).get("applicationId", ""))

    assert application(gang_of(a_cluster(PLAIN, labels=marks))) == "ray-team-demo"
    assert application(gang_of(a_cluster(PLAIN, labels=marks | {"yunikorn.apache.org/app-id": "mine"}))) == "mine"
    assert application(gang_of(a_cluster(PLAIN, labels={}))) == ""
    job = job_gang(a_job(JOBS["kubernetes-job"], labels=marks), DEFAULTS)
    origin = {labels.ORIGINATED_FROM_CR_NAME: "train", labels.ORIGINATED_FROM_CRD: "RayJob"}
    cluster = gang_of(a_cluster(PLAIN, name="train-fghij", labels=marks | origin))
    assert application(job, SUBMITTER_GROUP) == application(cluster) == "ray-team-train"


def test_yunikorns_users_may_write_the_gang_themselves() -> None:
    text = '[{"name":"headgroup","minMember":1,"minResource":{"cpu":"1"}}]'
    cluster = a_cluster(PLAIN, annotations={"yunikorn.apache.org/task-groups": text})
    head = scheduler_named("yunikorn").dress(gang_of(cluster), BARE, labels.HEAD_GROUP)
    assert head["metadata"]["annotations"]["yunikorn.apache.org/task-groups"] == text


@pytest.mark.parametrize(
    ("marks", "told"),
    [
        ({TOPOLOGY_MODE: "hard", HIGHEST_TIER: "2"}, []),
        ({HIGHEST_TIER: "high"}, []),
        ({TOPOLOGY_MODE: "firm"}, [TOPOLOGY_MODE]),
        ({TOPOLOGY_MODE: "soft", HIGHEST_TIER: "high"}, [HIGHEST_TIER]),
        ({TOPOLOGY_MODE: "soft", HIGHEST_TIER: "9" * 30}, [HIGHEST_TIER]),
        ({GANGS: "groups"}, []),
        ({GANGS: "each"}, [GANGS]),
    ],
)
def test_a_label_that_volcano_cannot_read_is_told_by_name(marks: dict[str, str], told: list[str]) -> None:
    found = scheduler_named("volcano").violations(Owner.of(a_cluster(PLAIN, labels=marks)))
    assert [violation.field for violation in found] == [f"metadata.labels[{name}]" for name in told]


def test_a_topology_reaches_the_pod_group() -> None:
    cluster = a_cluster(PLAIN, labels={TOPOLOGY_MODE: "hard", HIGHEST_TIER: "2"})
    assert volcano_pod_group(cluster)["spec"]["networkTopology"] == {"mode": "hard", "highestTierAllowed": 2}


def stored(*items: JSON) -> dict[ChildKey, JSON]:
    """As the API server gives them back."""
    return {
        child_key(item): {**item, "metadata": {**item["metadata"], "uid": item["metadata"]["name"]}} for item in items
    }


def test_a_topology_that_is_no_longer_asked_for_goes_from_the_pod_group() -> None:
    found = stored(volcano_pod_group(a_cluster(PLAIN, labels={TOPOLOGY_MODE: "hard"})))
    (action,) = plan_gang(scheduler_named("volcano"), gang_of(a_cluster(PLAIN, labels={})), found, is_at_rest=False)
    assert isinstance(action, PatchChild)
    assert action.patch == {"spec": {"networkTopology": None}}


def test_subgroups_of_volcano_are_replicas_of_hosts_and_whole_groups_each_with_the_topology() -> None:
    marks = {GANGS: "subgroups", TOPOLOGY_MODE: "hard", HIGHEST_TIER: "1"}
    spec = volcano_pod_group(a_cluster(CLUSTERS["multi-host"], labels=marks))["spec"]
    assert spec["minMember"] == 1 + 8 + 1
    assert "networkTopology" not in spec
    topology = {"mode": "hard", "highestTierAllowed": 1}
    assert spec["subGroupPolicy"] == [
        {
            "name": name,
            "labelSelector": {"matchLabels": {labels.GROUP: name}},
            "matchLabelKeys": [labels.REPLICA_NAME if size > 1 else labels.GROUP],
            "subGroupSize": size,
            "minSubGroups": count,
            "networkTopology": topology,
        }
        for name, size, count in (("headgroup", 1, 1), ("tpu", 4, 2), ("cpu", 1, 1))
    ]


def test_each_group_may_be_a_gang_of_volcano_for_itself() -> None:
    gang = gang_of(a_cluster(CLUSTERS["multi-host"], labels={GANGS: "groups", QUEUE: "research"}))
    groups = scheduler_named("volcano").objects(gang)
    sizes = {one["metadata"]["name"]: one["spec"]["minMember"] for one in groups}
    assert sizes == {"ray-demo-pg": 1, "ray-demo-pg.tpu": 8, "ray-demo-pg.cpu": 1}
    assert {one["spec"]["queue"] for one in groups} == {"research"}
    assert groups[1]["spec"]["minResources"] == {"cpu": "16", "memory": "32Gi", "nvidia.com/gpu": "8"}
    for group, name in ((labels.HEAD_GROUP, "ray-demo-pg"), ("tpu", "ray-demo-pg.tpu")):
        pod = scheduler_named("volcano").dress(gang, BARE, group)
        assert pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == name


def test_the_submitter_of_a_job_goes_with_the_head_where_groups_are_gangs_for_themselves() -> None:
    job = a_job(JOBS["kubernetes-job-of-the-user"], labels={GANGS: "groups"})
    gang = job_gang(job, DEFAULTS)
    head, gpu = scheduler_named("volcano").objects(gang)
    assert (head["spec"]["minResources"]["cpu"], gpu["spec"]["minResources"]["cpu"]) == ("1100m", "6")
    submitter = scheduler_named("volcano").dress(gang, BARE, SUBMITTER_GROUP)
    assert submitter["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "ray-train-pg"


@pytest.mark.parametrize("is_at_rest", [True, False])
def test_a_pod_group_of_a_group_that_is_gone_or_rests_asks_for_nothing(is_at_rest: bool) -> None:
    marks = {GANGS: "groups"}
    found = stored(*scheduler_named("volcano").objects(gang_of(a_cluster(CLUSTERS["multi-host"], labels=marks))))
    owner = Owner.of(a_cluster(PLAIN, labels=marks))
    gang = Gang(owner) if is_at_rest else Gang(owner, a_cluster(a_spec(a_group("cpu", 1))).spec)
    actions = plan_gang(scheduler_named("volcano"), gang, found, is_at_rest=is_at_rest)
    patches = {one.key.name: one.patch["spec"] for one in actions if isinstance(one, PatchChild)}
    assert len(patches) == len(actions)
    nothing = {"minMember": 0, "minResources": {"cpu": None, "memory": None, "nvidia.com/gpu": None}}
    assert patches["ray-demo-pg.tpu"] == nothing
    assert patches.keys() == {"ray-demo-pg.tpu"} | ({"ray-demo-pg", "ray-demo-pg.cpu"} if is_at_rest else set())


WAS: Final = "kubernetes-was"


def stored_by_kubernetes(cluster: RayCluster) -> dict[ChildKey, JSON]:
    """As its API server gives them back: with a field of its own in the template."""
    workload, group = scheduler_named(WAS).objects(gang_of(cluster))
    for item in (workload, group):
        item["metadata"]["uid"] = item["kind"]
    workload["spec"]["podGroupTemplates"][0]["schedulingConstraints"] = None
    return {child_key(item): item for item in (workload, group)}


def test_a_gang_of_kubernetes_that_is_as_it_should_be_is_left_alone() -> None:
    cluster = a_cluster(PLAIN)
    found = stored_by_kubernetes(cluster)
    assert plan_gang(scheduler_named(WAS), gang_of(cluster), found, is_at_rest=False) == []


def test_a_gang_of_kubernetes_that_grew_is_made_anew_without_waiting_for_its_pods() -> None:
    found = stored_by_kubernetes(a_cluster(PLAIN))
    larger = gang_of(a_cluster(a_spec(a_group("gpu", 5))))
    actions = plan_gang(scheduler_named(WAS), larger, found, is_at_rest=False)
    assert [(one.key.kind, one.held_by) for one in actions if isinstance(one, ReplaceChild)] == [
        ("Workload", PROTECTION),
        ("PodGroup", PROTECTION),
    ]


@pytest.mark.parametrize(("value", "is_gang"), [("true", True), ("True", True), ("false", False), ("", False)])
def test_kubernetes_starts_together_what_says_true(value: str, is_gang: bool) -> None:
    gang = gang_of(a_cluster(PLAIN, labels={labels.GANG_SCHEDULING_ENABLED: value}))
    scheduler = scheduler_named(WAS)
    assert bool(scheduler.objects(gang)) is is_gang
    assert ("schedulingGroup" in scheduler.dress(gang, BARE, labels.HEAD_GROUP)["spec"]) is is_gang


def test_kubernetes_says_what_a_gang_waits_for() -> None:
    group = stored_by_kubernetes(a_cluster(PLAIN))[ChildKey("PodGroup", "demo-cluster")]
    unscheduled = {"type": "PodGroupScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
    assert scheduler_named(WAS).waits([group]) is None
    group["status"] = {"conditions": [unscheduled]}
    assert scheduler_named(WAS).waits([group]) == Wait("Unschedulable", "PodGroup demo-cluster: no room")
    group["status"] = {"conditions": [unscheduled | {"status": "True"}]}
    assert scheduler_named(WAS).waits([group]) is None


def test_kai_warns_of_pods_without_a_queue() -> None:
    kai = scheduler_named("kai-scheduler")
    assert list(kai.warnings(Owner.of(a_cluster(PLAIN)))) == []
    assert "kai.scheduler/queue" in str(kai.warnings(Owner.of(a_cluster(PLAIN, labels={})))[0])
