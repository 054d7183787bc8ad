"""The pods that a batch scheduler starts together, and what they ask for in all. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from raykeeper.api import labels
from raykeeper.api.containers import AUTOSCALER, HISTORY_COLLECTOR
from raykeeper.api.fields import MAX_INT32
from raykeeper.api.meta import JSON
from raykeeper.api.podtemplates import containers, pod_spec
from raykeeper.api.raycluster import RAY_CLUSTERS, RayClusterSpec, WorkerGroupSpec
from raykeeper.api.rayjob import RAY_JOBS
from raykeeper.operator.shared.features import is_autoscaled
from raykeeper.operator.shared.owner import Owner
from raykeeper.operator.shared.replicas import desired_replicas, least_replicas
from raykeeper.operator.shared.sidecars import autoscaler_resources, collector_resources
from raykeeper.operator.shared.totals import requested


@dataclass(frozen=True)
class Group:
    """Pods that are alike."""

    name: str
    template: JSON
    """As the user wrote it, with the resources of what the operator puts beside Ray."""
    members: int
    """How many of them start together: the least number where the autoscaler decides, else all."""
    hosts: int = 1
    """How many of them are one replica."""


@dataclass(frozen=True)
class Gang:
    """The pods of a RayCluster, or of a RayJob."""

    owner: Owner
    spec: RayClusterSpec | None = None
    """Of the cluster; None where that is another's, suspended or gone."""
    submitter: JSON | None = None
    """Template of the pod that submits a job. It starts once the cluster is there: were it a member, both would wait
    for each other."""

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The head first; none without a cluster."""
        if self.spec is None:
            return ()
        head = Group(labels.HEAD_GROUP, _with_sidecars(self.spec, self.spec.head_group_spec.template, is_head=True), 1)
        return (head, *(_worker_group(self.spec, group) for group in self.spec.worker_group_specs))

    @property
    def size(self) -> int:
        return min(MAX_INT32, sum(group.members for group in self.groups))

    @property
    def resources(self) -> dict[str, str]:
        """What all of them ask for, the submitter too."""
        pods = [(group.template, group.members) for group in self.groups if group.members]
        if self.submitter is not None:
            pods.append((self.submitter, 1))
        return {name: str(total) for name, total in requested(pods).items()}

    @property
    def is_of_cluster(self) -> bool:
        return self.owner.kind == RAY_CLUSTERS.kind

    @property
    def is_of_jobs_cluster(self) -> bool:
        """Whether a RayJob made the RayCluster, so that both are one gang."""
        return self.is_of_cluster and self.owner.labels.get(labels.ORIGINATED_FROM_CRD) == RAY_JOBS.kind

    @property
    def app_name(self) -> str:
        """The name of the RayJob, else of the RayCluster."""
        origin = self.owner.labels.get(labels.ORIGINATED_FROM_CR_NAME)
        return origin if origin and self.is_of_jobs_cluster else self.owner.key.name

    def labels(self, names: Mapping[str, str]) -> dict[str, str]:
        """Labels of the owner under other names; those that it does not have, or that are empty, are left out."""
        found = {name: self.owner.labels.get(source, "") for source, name in names.items()}
        return {name: value for name, value in found.items() if value}


def _worker_group(spec: RayClusterSpec, group: WorkerGroupSpec) -> Group:
    replicas = least_replicas(group) if is_autoscaled(spec) else desired_replicas(group)
    template = _with_sidecars(spec, group.template, is_head=False)
    return Group(group.group_name, template, replicas * group.num_of_hosts, group.num_of_hosts)


def _with_sidecars(spec: RayClusterSpec, template: JSON, *, is_head: bool) -> JSON:
    """The template with the containers that the operator adds, as far as they ask for resources."""
    added: list[JSON] = []
    if is_head and is_autoscaled(spec):
        added.append({"name": AUTOSCALER, "resources": autoscaler_resources(spec.autoscaler_options)})
    history = spec.history_server_options
    if history is not None and history.collector_options is not None:
        added.append({"name": HISTORY_COLLECTOR, "resources": collector_resources(history.collector_options)})
    if not added:
        return template
    return {**template, "spec": {**pod_spec(template), "containers": [*containers(template), *added]}}
