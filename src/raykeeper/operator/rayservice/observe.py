"""What is there of a RayService: every read is here, all from caches and from the last answers of Serve."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec

from raykeeper.api import containers, labels, names
from raykeeper.api.meta import JSON, Object, ObjectKey
from raykeeper.api.raycluster import RayCluster
from raykeeper.api.rayservice import RAY_SERVICES, RayService
from raykeeper.api.times import parse_time
from raykeeper.operator import kinds
from raykeeper.operator.context import Context
from raykeeper.operator.raycluster.reading import read_cluster
from raykeeper.operator.rayhead.address import HeadAddress, dashboard_of, pod_address
from raykeeper.operator.rayhead.poller import OwnerKey, Reading
from raykeeper.operator.rayhead.questions import (
    Question,
    deploy_question,
    proxy_question,
    requests_question,
    serve_question,
)
from raykeeper.operator.rayservice.answers import applications, proxy_health
from raykeeper.operator.rayservice.clusters import config_targets, upgrades
from raykeeper.operator.rayservice.facts import ClusterFacts, Facts, HeadFacts, ServeFacts
from raykeeper.operator.rayservice.routing import Routing
from raykeeper.operator.rayservice.serve_config import KEPT, SENT, ServeConfig, parse_serve_config, unpacked
from raykeeper.operator.rayservice.services import serve_service_name
from raykeeper.operator.rayservice.states import UpgradeType
from raykeeper.operator.rayservice.upgrade.failures import Failures, RequestWindow
from raykeeper.operator.rayservice.upgrade.options import error_limit, is_incremental, pace_of, rolls_back_unhealthy
from raykeeper.operator.rayservice.upgrade.routes import cluster_service_name
from raykeeper.operator.rayservice.upgrade.steps import WHOLE
from raykeeper.operator.rayservice.versions import Match, adopted_marks, match
from raykeeper.operator.shared.head_pods import cluster_trouble, head_instance, head_pod, is_ready, pod_view
from raykeeper.operator.shared.random_names import random_end
from raykeeper.operator.shared.service_ports import serve_ports
from raykeeper.operator.shared.spec_hash import spec_hash
from raykeeper.operator.shared.troubles import pods_trouble
from raykeeper.ray.heads import Head
from raykeeper.ray.serve import RequestCounts

ROLLED_BACK: Final = "raykeeper.io/rolled-back"
"""Annotation of a RayCluster: the goal of an upgrade that did not work, so that traffic came back to it."""
ROLLED_BACK_BECAUSE: Final = "raykeeper.io/rolled-back-because"
"""Annotation of a RayCluster: why."""
REPLACED_AT: Final = "raykeeper.io/replaced-at"
"""Annotation of a RayCluster: since when another serves in its place."""
SERVE_SECONDS: Final = 10.0
"""For an answer of Serve, which nobody waits for: the first one takes 7 s on a busy machine."""
MOST_COUNTED_PODS: Final = 50
"""Pods whose failed requests are counted; a page of metrics is half a megabyte. More say the same."""
BUSY_SECONDS, CALM_SECONDS = 2.0, 10.0
"""Between two questions: while something is under way, and while all runs."""


@dataclass(frozen=True)
class Observed:
    """What is known about one RayService."""

    facts: Facts
    clusters: Mapping[str, RayCluster]
    items: Mapping[str, Object]
    """The same, with their specs as they are stored."""
    configs: Mapping[str, ServeConfig]
    """What Serve on each cluster in use should have, as far as that is known."""

    def kept_marks(self, name: str) -> dict[str, str]:
        """What is noted about a config that Serve on the cluster took."""
        head, config = self.facts.clusters[name].head, self.configs.get(name)
        if config is None or head is None:
            return {}
        kept = {KEPT: config.packed()} if self.facts.is_stepwise else {}
        return {SENT: config.mark(head.instance)} | kept

    def is_capacity_alone(self, name: str) -> bool:
        """Whether the config differs from what Serve had in nothing but the capacity."""
        known = unpacked(self.clusters[name].metadata.annotations.get(KEPT, ""))
        config = self.configs.get(name)
        is_known = self.facts.is_stepwise and known is not None and config is not None
        return is_known and known is not None and config is not None and known.has_same_applications(config)


@dataclass
class Questions:
    """What is asked on behalf of one service."""

    owner: OwnerKey
    asked: list[Question[Any]] = field(default_factory=list)


class Observer:
    """Reads caches, and has the heads asked."""

    def __init__(self, context: Context, version: str, routing: Routing) -> None:
        self._context = context
        self._version = version
        cache = context.informers.cache
        self._clusters = cache(kinds.WATCHED_RAYCLUSTERS)
        self._head_services = cache(kinds.WATCHED_HEAD_SERVICES)
        self._services = cache(kinds.WATCHED_ORIGINATED_SERVICES)
        self._endpoints = cache(kinds.WATCHED_SERVE_ENDPOINTS)
        self._pods = cache(kinds.WATCHED_PODS)
        self._routing = routing
        self._windows: dict[ObjectKey, RequestWindow] = {}
        """Of the services that have failed requests counted, for as long as an upgrade goes on."""

    def observe(self, service: RayService, *, is_valid: bool) -> Observed:
        """Everything at once; nothing is waited for."""
        items = {item.metadata.name: item for item in self._clusters.find(kinds.BY_OWNER, service.metadata.uid)}
        clusters = {name: read_cluster(item)[0] for name, item in items.items()}
        services = {one.metadata.name: one for one in self._services.find(kinds.BY_OWNER, service.metadata.uid)}
        config = _config(service)
        pending = service.status.pending_service_status
        facts = Facts(
            clusters={name: self._cluster_facts(service, cluster) for name, cluster in clusters.items()},
            services={name: one.metadata.uid for name, one in services.items()},
            serving=_selected(services.get(serve_service_name(service))),
            endpoints=self._ready_endpoints(service),
            is_valid=is_valid,
            upgrades=upgrades(service, has_zero_downtime=self._context.settings.rayservice.has_zero_downtime),
            has_applications=config is None or config.has_applications,
            random_end=random_end(),
            is_stepwise=is_incremental(service) or (not is_valid and pending.target_capacity is not None),
            pace=pace_of(service, pending.ray_cluster_name),
            routing=self._routing.observe(service),
            goal=_goal(service, config),
            rolls_back_unhealthy=rolls_back_unhealthy(service),
            error_limit=error_limit(service),
        )
        configs = self._configs(service, facts, clusters, config)
        answered = self._ask(service, facts, clusters, configs)
        return Observed(replace(facts, clusters=answered), clusters, items, configs)

    def _configs(
        self, service: RayService, facts: Facts, clusters: Mapping[str, RayCluster], config: ServeConfig | None
    ) -> dict[str, ServeConfig]:
        """What Serve should have on each cluster where that is known."""
        targets, status = config_targets(service, facts), service.status
        wanted: dict[str, ServeConfig | None] = {}
        for one in (status.active_service_status, status.pending_service_status):
            name = one.ray_cluster_name
            if name in clusters and facts.is_stepwise:
                present = (
                    config if facts.is_valid and facts.clusters[name].match in (Match.SAME, Match.APPENDED) else None
                )
                wanted[name] = _with_capacity(clusters[name], present, one.target_capacity)
            elif name in clusters and (name in targets or _has_present(clusters[name], config)):
                wanted[name] = config
        return {name: found for name, found in wanted.items() if found is not None}

    def has_clusters(self, uid: str) -> bool:
        """Whether the RayService with this uid has made some that are still there."""
        return bool(self._clusters.find(kinds.BY_OWNER, uid))

    def forget(self, key: ObjectKey) -> None:
        """Ask nobody about a RayService any more."""
        self._context.polls.forget(OwnerKey(RAY_SERVICES.kind, key))
        self._windows.pop(key, None)

    def _cluster_facts(self, service: RayService, cluster: RayCluster) -> ClusterFacts:
        """All but what a head is asked."""
        metadata, goal = cluster.metadata, service.spec.ray_cluster_config
        pods = self._pods.find(kinds.BY_CLUSTER, str(cluster.key))
        present = [pod_view(pod) for pod in pods if pod.metadata.deletion_timestamp is None]
        differs = goal.suspend is not None and bool(goal.suspend) != bool(cluster.spec.suspend)
        was_seen = _was_seen(service, metadata.name)
        return ClusterFacts(
            name=metadata.name,
            uid=metadata.uid,
            is_going=metadata.deletion_timestamp is not None,
            match=match(metadata.annotations, goal, self._version),
            marks=adopted_marks(cluster.spec, goal, self._version, was_seen=was_seen),
            status=cluster.status,
            head=_head(head_pod(present)),
            ready_pods=sum(is_ready(pod) and pod["metadata"]["labels"].get(labels.SERVE) == "true" for pod in present),
            replaced_at=parse_time(metadata.annotations.get(REPLACED_AT)),
            needs_suspend=goal.suspend if differs else None,
            trouble=pods_trouble(present) or cluster_trouble(cluster),
            rolled_back=metadata.annotations.get(ROLLED_BACK, ""),
            rolled_back_because=metadata.annotations.get(ROLLED_BACK_BECAUSE, ""),
        )

    def _ask(
        self, service: RayService, facts: Facts, clusters: Mapping[str, RayCluster], configs: Mapping[str, ServeConfig]
    ) -> dict[str, ClusterFacts]:
        """The clusters with what their heads last said; from now on they are asked."""
        status = service.status
        pending = status.pending_service_status.ray_cluster_name
        in_use = {status.active_service_status.ray_cluster_name, pending} & clusters.keys()
        questions = Questions(OwnerKey(RAY_SERVICES.kind, service.key))
        answered = dict(facts.clusters)
        for name in in_use:
            wanted = configs.get(name)
            answered[name] = self._answered(service, facts.clusters[name], clusters[name], wanted, questions)
        if facts.error_limit is not None and pending in in_use:
            failures = self._failures(service.key, clusters[pending], questions)
            answered[pending] = replace(answered[pending], failures=failures)
        else:
            self._windows.pop(service.key, None)
        serves = [answered[name].serve for name in in_use]
        is_settled = not pending and all(serve.is_running and serve.has_config for serve in serves)
        is_calm = is_settled or not facts.has_applications
        every = CALM_SECONDS if is_calm else BUSY_SECONDS
        paced = [replace(one, every_seconds=max(one.every_seconds, every)) for one in questions.asked]
        self._context.polls.follow(questions.owner, paced)
        return answered

    def _answered(
        self,
        service: RayService,
        facts: ClusterFacts,
        cluster: RayCluster,
        config: ServeConfig | None,
        questions: Questions,
    ) -> ClusterFacts:
        head = facts.head
        found = self._head_services.get(ObjectKey(cluster.metadata.namespace, names.head_service_name(cluster)))
        address = dashboard_of(found, self._context.settings.pods.cluster_domain) if found else None
        if head is None or not head.is_ready or address is None:
            return facts
        dashboard = self._context.heads.of(cluster, address, SERVE_SECONDS)
        serve = self._serve(dashboard, cluster, head, config, questions)
        return replace(facts, serve=serve, head=self._with_proxy(service, cluster, head, questions))

    def _serve(
        self, dashboard: Head, cluster: RayCluster, head: HeadFacts, config: ServeConfig | None, questions: Questions
    ) -> ServeFacts:
        sent = cluster.metadata.annotations.get(SENT, "")
        reading = self._reading(questions, serve_question(dashboard, sent))
        said = applications(reading.answer or {})
        facts = ServeFacts(said, is_current=reading.is_current, failure=reading.failure or "")
        if config is None:
            return facts
        facts = replace(facts, has_goal=True)
        mark = config.mark(head.instance)
        has_config = sent == mark or not config.body
        is_lost = config.has_applications and reading.is_current and not said
        if has_config and not is_lost:
            return replace(facts, has_config=True)
        deployed = self._reading(questions, deploy_question(dashboard, mark, config.body))
        return replace(
            facts,
            has_config=has_config,
            was_sent=deployed.has_answer and not has_config,
            refusal=deployed.failure or "",
        )

    def _with_proxy(self, service: RayService, cluster: RayCluster, head: HeadFacts, questions: Questions) -> HeadFacts:
        pod = self._pods.get(ObjectKey(cluster.metadata.namespace, head.pod))
        ip = msgspec.json.decode(pod.status).get("podIP") if pod is not None and pod.status else None
        if service.spec.exclude_head_pod_from_serve_svc or not ip:
            return head
        port = next((one["port"] for one in serve_ports(cluster)), containers.SERVE_PORT)
        address = pod_address(ObjectKey(cluster.metadata.namespace, head.pod), ip, port)
        reading = self._reading(questions, proxy_question(self._context.heads.of(cluster, address)))
        is_healthy, known_at = proxy_health(reading, self._context.clock.now())
        return replace(head, is_proxy_healthy=is_healthy, known_at=known_at)

    def _failures(self, service: ObjectKey, cluster: RayCluster, questions: Questions) -> Failures:
        """How the requests to a new cluster went, by the metrics of each pod that takes some."""
        window = self._windows.setdefault(service, RequestWindow())
        pods: set[str] = set()
        troubles: list[str] = []
        for pod in sorted(self._pods.find(kinds.BY_CLUSTER, str(cluster.key)), key=lambda one: one.metadata.name):
            address = metrics_address(pod)
            if address is None or len(pods) == MOST_COUNTED_PODS:
                continue
            reading = self._reading(questions, requests_question(self._context.heads.of(cluster, address)))
            pods.add(pod.metadata.uid)
            troubles += [reading.failure] if reading.failure else []
            if reading.answered_at is not None:
                window.note(pod.metadata.uid, reading.answered_at, reading.answer or RequestCounts())
        found = window.failures(self._context.clock.now(), pods)
        return replace(found, trouble=troubles[0]) if troubles else found

    def _reading(self, questions: Questions, question: Question[Any]) -> Reading[Any]:
        questions.asked.append(question)
        return self._context.polls.reading(questions.owner, question)

    def _ready_endpoints(self, service: RayService) -> int:
        """Different pods behind the serve service that take requests; or behind those of both clusters."""
        names_ = [serve_service_name(service)]
        if is_incremental(service):
            status = service.status
            both = status.active_service_status.ray_cluster_name, status.pending_service_status.ray_cluster_name
            names_ += [cluster_service_name(name) for name in both if name]
        keys = [str(ObjectKey(service.metadata.namespace, name)) for name in names_]
        slices = [one for key in keys for one in self._endpoints.find(kinds.BY_SERVICE, key)]
        return len({uid for one in slices for uid in _ready_uids(msgspec.json.decode(one.endpoints or b"[]"))})


def metrics_address(pod: Object) -> HeadAddress | None:
    """Where a pod that takes requests tells its metrics; None for one that takes none."""
    status, takes_requests = msgspec.json.decode(pod.status or b"{}"), pod.metadata.labels.get(labels.SERVE) == "true"
    if not takes_requests or not status.get("podIP") or not is_ready({"status": status}):
        return None
    (first, *_) = msgspec.json.decode(pod.spec or b"{}").get("containers") or [{}]
    ports = {port.get("name"): port["containerPort"] for port in first.get("ports") or ()}
    return pod_address(pod.key, status["podIP"], ports.get(containers.METRICS_PORT_NAME, containers.METRICS_PORT))


def _ready_uids(endpoints: Iterable[JSON] | None) -> Iterable[str]:
    for endpoint in endpoints or ():
        target = endpoint.get("targetRef") or {}
        if (endpoint.get("conditions") or {}).get("ready") is True and target.get("uid"):
            yield target["uid"]


def _config(service: RayService) -> ServeConfig | None:
    try:
        return parse_serve_config(service.spec.serve_config_v2)
    except ValueError:
        return None


def _has_present(cluster: RayCluster, config: ServeConfig | None) -> bool:
    """Whether the cluster was given the present config, so that it gets it again should its head lose it."""
    return config is not None and cluster.metadata.annotations.get(SENT, "").startswith(f"{config.hash} ")


def _with_capacity(cluster: RayCluster, config: ServeConfig | None, capacity: int | None) -> ServeConfig | None:
    """The config, else what the cluster was given, with its share of the capacity. None where that is not known: the
    cluster is left alone then.
    """
    base = config or unpacked(cluster.metadata.annotations.get(KEPT, ""))
    return base.with_capacity(WHOLE if capacity is None else capacity) if base is not None else None


def _goal(service: RayService, config: ServeConfig | None) -> str:
    if config is None or not is_incremental(service):
        return ""
    return f"{spec_hash(service.spec.ray_cluster_config)} {config.hash}"


def _was_seen(service: RayService, name: str) -> bool:
    """Whether the operator before us had the present spec before it when it last looked, and chose this cluster."""
    status, strategy = service.status, service.spec.upgrade_strategy
    latest = status.pending_service_status.ray_cluster_name or status.active_service_status.ray_cluster_name
    keeps_old = strategy is not None and strategy.type == UpgradeType.NONE
    return status.observed_generation == service.metadata.generation and name == latest and not keeps_old


def _selected(service: Object | None) -> str:
    if service is None:
        return ""
    spec = msgspec.json.decode(service.spec or b"{}")
    return str((spec.get("selector") or {}).get(labels.CLUSTER, ""))


def _head(pod: JSON | None) -> HeadFacts | None:
    if pod is None:
        return None
    metadata = pod["metadata"]
    return HeadFacts(metadata["name"], head_instance(pod), is_ready(pod), metadata["labels"].get(labels.SERVE, ""))
