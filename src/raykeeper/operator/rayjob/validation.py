"""What must hold for a RayJob before anything is made of it. Pure."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from raykeeper.api import labels, names
from raykeeper.api.podtemplates import containers, pod_spec
from raykeeper.api.rayjob import DeletionRule, RayJob, RayJobSpec
from raykeeper.api.syntax import is_dns_1035_label
from raykeeper.operator.gates import FeatureGates, Gate
from raykeeper.operator.raycluster.validation.candidate import Candidate
from raykeeper.operator.raycluster.validation.validate import spec_violations
from raykeeper.operator.rayjob.deletion_rules import DESTRUCTIVENESS
from raykeeper.operator.rayjob.states import WAITING, SubmissionMode
from raykeeper.operator.rayjob.submitter.command import (
    MOST_ARGUMENT_BYTES,
    parse_resources,
    parse_runtime_env,
    script_bytes,
)
from raykeeper.operator.shared.features import is_autoscaled, is_kubernetes_token_auth
from raykeeper.operator.shared.violations import Violation, has_value, is_missing, is_set

MODES: Final = [mode.value for mode in SubmissionMode]
OF_THE_CLUSTER: Final = ("DeleteCluster", "DeleteWorkers")


@dataclass(frozen=True)
class JobCandidate:
    """The spec of a RayJob, also one inside a RayCronJob."""

    spec: RayJobSpec
    annotations: dict[str, str]
    gates: FeatureGates
    path: str = "spec"

    def at(self, field: str) -> str:
        return f"{self.path}.{field}"

    @property
    def mode(self) -> str:
        return self.spec.submission_mode


def violations(job: RayJob, gates: FeatureGates) -> list[Violation]:
    """All that is wrong with a RayJob; empty for one that can be worked on."""
    candidate = JobCandidate(job.spec, job.metadata.annotations, gates)
    return [*_metadata(job), *job_spec_violations(candidate), *_status(job)]


def job_spec_violations(candidate: JobCandidate) -> list[Violation]:
    """All that is wrong with a spec, whichever object carries it."""
    return [violation for rule in RULES for violation in rule(candidate)]


def _metadata(job: RayJob) -> Iterator[Violation]:
    name = job.metadata.name
    if len(name) > names.MAX_RAYJOB_NAME_LENGTH:
        cure = f"use at most {names.MAX_RAYJOB_NAME_LENGTH} characters, its RayClusters are called after it"
        yield has_value("metadata.name", name, cure, "Metadata")
    if not is_dns_1035_label(name):
        cure = "use lower-case letters, digits and dashes, starting with a letter, as for the name of a service"
        yield has_value("metadata.name", name, cure, "Metadata")


def _status(job: RayJob) -> Iterator[Violation]:
    if job.status.job_deployment_status == WAITING and job.spec.submission_mode != SubmissionMode.INTERACTIVE:
        cure = "only a job in InteractiveMode waits for its id"
        yield has_value("status.jobDeploymentStatus", WAITING, cure, "Status")


def _suspension(job: JobCandidate) -> Iterator[Violation]:
    if job.spec.suspend and not job.spec.shutdown_after_job_finishes:
        yield has_value(job.at("suspend"), True, "set shutdownAfterJobFinishes too, suspending deletes the cluster")
    if job.spec.suspend and job.spec.cluster_selector:
        yield has_value(job.at("suspend"), True, "a job on the cluster of somebody else cannot be suspended")


def _ttl(job: JobCandidate) -> Iterator[Violation]:
    ttl = job.spec.ttl_seconds_after_finished
    if ttl < 0:
        yield has_value(job.at("ttlSecondsAfterFinished"), ttl, "use 0 or more")
    if ttl > 0 and not job.spec.shutdown_after_job_finishes:
        yield has_value(job.at("ttlSecondsAfterFinished"), ttl, "set shutdownAfterJobFinishes, or remove it")


def _deletion(job: JobCandidate) -> Iterator[Violation]:
    strategy, path = job.spec.deletion_strategy, job.at("deletionStrategy")
    if strategy is None:
        return
    if not job.gates.is_on(Gate.RAYJOB_DELETION_POLICY):
        yield is_set(path, "remove it, or start the operator with --feature-gates=RayJobDeletionPolicy=true")
    has_pair = strategy.on_success is not None or strategy.on_failure is not None
    if strategy.deletion_rules and has_pair:
        yield is_set(f"{path}.deletionRules", "remove onSuccess and onFailure")
    if strategy.deletion_rules:
        yield from _deletion_rules(job, strategy.deletion_rules, f"{path}.deletionRules")
        return
    for field, policy in (("onSuccess", strategy.on_success), ("onFailure", strategy.on_failure)):
        chosen = policy.policy if policy else None
        if chosen is None:
            yield is_missing(f"{path}.{field}.policy", f"choose one of {', '.join(DESTRUCTIVENESS)}")
            continue
        yield from _policy(job, chosen, f"{path}.{field}.policy")
        if chosen == "DeleteNone" and job.spec.shutdown_after_job_finishes:
            yield has_value(f"{path}.{field}.policy", chosen, "remove shutdownAfterJobFinishes")


def _deletion_rules(job: JobCandidate, rules: tuple[DeletionRule, ...], path: str) -> Iterator[Violation]:
    if job.spec.shutdown_after_job_finishes:
        yield is_set(path, "remove shutdownAfterJobFinishes, the rules say what is deleted")
    seen: dict[tuple[str, str], int] = {}
    for index, rule in enumerate(rules):
        condition, here = rule.condition, f"{path}[{index}]"
        yield from _policy(job, rule.policy, f"{here}.policy")
        if (condition.job_status is None) == (condition.job_deployment_status is None):
            yield is_missing(f"{here}.condition", "give one of jobStatus and jobDeploymentStatus")
        if condition.ttl_seconds < 0:
            yield has_value(f"{here}.condition.ttlSeconds", condition.ttl_seconds, "use 0 or more")
        key = (condition.job_status or f"deployment {condition.job_deployment_status}", rule.policy)
        if key in seen:
            yield has_value(f"{here}.policy", rule.policy, "there is another rule for the same end and policy")
        seen.setdefault(key, condition.ttl_seconds)
    yield from _order(seen, path)


def _order(seen: dict[tuple[str, str], int], path: str) -> Iterator[Violation]:
    for end in {end for end, _ in seen}:
        times = [(policy, seen[end, policy]) for policy in DESTRUCTIVENESS[1:] if (end, policy) in seen]
        for (milder, first), (harsher, second) in itertools.pairwise(times):
            if first > second:
                found = f"has {harsher} after {second} s and {milder} after {first} s"
                yield Violation(path, found, "what deletes more must not come first")


def _policy(job: JobCandidate, policy: str, path: str) -> Iterator[Violation]:
    if policy in OF_THE_CLUSTER and job.spec.cluster_selector:
        yield has_value(path, policy, "the cluster that clusterSelector names belongs to somebody else")
    cluster = job.spec.ray_cluster_spec
    if policy == "DeleteWorkers" and cluster is not None and is_autoscaled(cluster):
        yield has_value(path, policy, "an autoscaled cluster would make its workers again; use DeleteCluster")


def _cluster(job: JobCandidate) -> Iterator[Violation]:
    spec = job.spec
    if spec.ray_cluster_spec is None and not spec.cluster_selector:
        yield is_missing(job.at("rayClusterSpec"), "give one, or name a cluster by clusterSelector")
    if spec.cluster_selector:
        if not spec.cluster_selector.get(labels.CLUSTER):
            yield is_missing(job.at(f"clusterSelector[{labels.CLUSTER}]"), "the name of the RayCluster")
        if spec.backoff_limit > 0:
            yield has_value(job.at("backoffLimit"), spec.backoff_limit, "a job on another's cluster has one attempt")
    if spec.ray_cluster_spec is None:
        return
    path = job.at("rayClusterSpec")
    yield from spec_violations(Candidate(spec.ray_cluster_spec, job.annotations, job.gates, path))
    strategy = spec.ray_cluster_spec.upgrade_strategy
    if strategy and strategy.type:
        yield is_set(f"{path}.upgradeStrategy.type", "remove it, the cluster of a RayJob is never upgraded")
    if is_kubernetes_token_auth(spec.ray_cluster_spec):
        yield is_set(
            f"{path}.authOptions.enableK8sTokenAuth", "the operator has no token that such a cluster would take"
        )


def _mode(job: JobCandidate) -> Iterator[Violation]:
    spec = job.spec
    if job.mode not in MODES:
        yield has_value(job.at("submissionMode"), job.mode, f"use one of {', '.join(MODES)}")
    if job.mode == SubmissionMode.INTERACTIVE and spec.backoff_limit > 0:
        yield has_value(job.at("backoffLimit"), spec.backoff_limit, "a job in InteractiveMode has one attempt")
    if not _brings_its_command(job) and not spec.entrypoint.strip():
        yield is_missing(job.at("entrypoint"), "the command that is the job")
    if job.mode == SubmissionMode.SIDECAR:
        yield from _sidecar(job)


def _brings_its_command(job: JobCandidate) -> bool:
    """Whether the job is given to Ray by what the user runs: by hand, or by a submitter with a command of its own."""
    if job.mode == SubmissionMode.INTERACTIVE:
        return True
    template = job.spec.submitter_pod_template
    submitter = next(iter(containers(template)), {}) if template else {}
    return job.mode == SubmissionMode.K8S_JOB and bool(submitter.get("command"))


def _sidecar(job: JobCandidate) -> Iterator[Violation]:
    spec = job.spec
    if spec.cluster_selector:
        yield is_set(job.at("clusterSelector"), "SidecarMode puts a container into a cluster of the job's own")
    if spec.submitter_pod_template is not None:
        yield is_set(job.at("submitterPodTemplate"), "remove it, in SidecarMode there is no pod of the submitter's own")
    limit = spec.submitter_config.backoff_limit if spec.submitter_config else None
    if limit is not None and not job.gates.is_on(Gate.SIDECAR_SUBMITTER_RESTART):
        yield is_set(job.at("submitterConfig.backoffLimit"), "remove it, a submitter beside the head runs once")
    if spec.retry_ray_cluster_strategy == "ReuseRayCluster":
        field = job.at("retryRayClusterStrategy")
        yield has_value(field, spec.retry_ray_cluster_strategy, "in SidecarMode each attempt needs a new head")
    if spec.ray_cluster_spec is not None:
        policy = pod_spec(spec.ray_cluster_spec.head_group_spec.template).get("restartPolicy")
        if policy not in (None, "", "Never"):
            field = job.at("rayClusterSpec.headGroupSpec.template.spec.restartPolicy")
            yield has_value(field, policy, "in SidecarMode use Never, a head that restarts runs the job again")


def _texts(job: JobCandidate) -> Iterator[Violation]:
    try:
        parse_runtime_env(job.spec)
    except ValueError as error:
        yield Violation(job.at("runtimeEnvYAML"), "cannot be used", str(error))
    try:
        parse_resources(job.spec)
    except ValueError as error:
        yield Violation(job.at("entrypointResources"), "cannot be used", str(error))


def _lengths(job: JobCandidate) -> Iterator[Violation]:
    """What Linux would refuse to start, which nobody sees but in the log of a submitter that failed."""
    if _brings_its_command(job):
        return
    size = len(job.spec.entrypoint.strip().encode())
    if size > MOST_ARGUMENT_BYTES:
        cure = f"a command has at most {MOST_ARGUMENT_BYTES:,}; put it into a file, in the image or a ConfigMap"
        yield Violation(job.at("entrypoint"), f"has {size:,} bytes", cure)
    elif job.mode in (SubmissionMode.K8S_JOB, SubmissionMode.SIDECAR):
        with contextlib.suppress(ValueError):  # said by another rule
            if (whole := script_bytes(job.spec)) > MOST_ARGUMENT_BYTES:
                cure = f"a submitter takes at most {MOST_ARGUMENT_BYTES:,}; use HTTPMode, or put them into files"
                field = job.at("entrypoint")
                yield Violation(field, f"has {whole:,} bytes with runtimeEnvYAML, metadata and quotes", cure)


def _numbers(job: JobCandidate) -> Iterator[Violation]:
    spec = job.spec
    for field, value in (
        ("activeDeadlineSeconds", spec.active_deadline_seconds),
        ("preRunningDeadlineSeconds", spec.pre_running_deadline_seconds),
    ):
        if value is not None and value <= 0:
            yield has_value(job.at(field), value, "use a number above 0, or remove it")
    if spec.backoff_limit < 0:
        yield has_value(job.at("backoffLimit"), spec.backoff_limit, "use 0 or more")


Rule = Callable[[JobCandidate], Iterator[Violation]]
RULES: Final[tuple[Rule, ...]] = (_suspension, _ttl, _deletion, _cluster, _mode, _texts, _lengths, _numbers)
