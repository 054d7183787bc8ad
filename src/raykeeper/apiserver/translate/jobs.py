"""Jobs as RayJobs and back."""

from __future__ import annotations

from google.protobuf.timestamp_pb2 import Timestamp

from raykeeper.api.containers import JOB_SUBMITTER
from raykeeper.api.meta import JSON
from raykeeper.api.times import parse_time
from raykeeper.apiserver.protos.job_pb2 import RayJob, RayJobSubmitter
from raykeeper.apiserver.translate.metadata import CLUSTER_NAME, USER, common_labels, own_labels
from raykeeper.apiserver.translate.moments import to_timestamp
from raykeeper.apiserver.translate.quantities import canonical, check_amount, shortest_float
from raykeeper.apiserver.translate.specs import Templates, from_cluster_spec, to_cluster_spec
from raykeeper.apiserver.translate.structs import merged, to_plain, to_struct

_SUBMITTER_CPU, _SUBMITTER_MEMORY = "1", "1Gi"


def to_ray_job(job: RayJob, templates: Templates) -> JSON:
    """The RayJob to create. Raises `Untranslatable`."""
    labels = {**dict(job.labels), **common_labels(job.user), CLUSTER_NAME: job.name}
    metadata: JSON = {"name": job.name, "namespace": job.namespace, "labels": labels}
    if job.metadata:
        metadata["annotations"] = dict(job.metadata)
    spec: JSON = {**_texts(job), **_numbers(job)}
    if job.HasField("cluster_spec"):
        spec["rayClusterSpec"] = to_cluster_spec(job.cluster_spec, job.version, templates)
    if job.HasField("jobSubmitter"):
        spec["submitterPodTemplate"] = _submitter(job.jobSubmitter)
    if job.HasField("suspend"):
        spec["suspend"] = job.suspend
    if job.HasField("deletion_strategy"):
        spec["deletionStrategy"] = to_plain(job.deletion_strategy)
    spec = merged(spec, to_plain(job.spec))
    return {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": metadata, "spec": spec}


def _texts(job: RayJob) -> JSON:
    fields: JSON = {
        "entrypoint": job.entrypoint,
        "runtimeEnvYAML": job.runtime_env,
        "jobId": job.job_id,
        "metadata": dict(job.metadata),
        "clusterSelector": dict(job.cluster_selector),
        "entrypointResources": job.entrypointResources,
        "submissionMode": job.submission_mode,
    }
    return {name: value for name, value in fields.items() if value}


def _numbers(job: RayJob) -> JSON:
    fields: JSON = {"ttlSecondsAfterFinished": job.ttl_seconds_after_finished}
    if job.shutdown_after_job_finishes:
        fields["shutdownAfterJobFinishes"] = True
    if job.entrypointNumCpus > 0:
        fields["entrypointNumCpus"] = shortest_float(job.entrypointNumCpus)
    if job.entrypointNumGpus > 0:
        fields["entrypointNumGpus"] = shortest_float(job.entrypointNumGpus)
    if job.activeDeadlineSeconds > 0:
        fields["activeDeadlineSeconds"] = job.activeDeadlineSeconds
    if job.HasField("backoff_limit"):
        fields["backoffLimit"] = job.backoff_limit
    return fields


def _submitter(submitter: RayJobSubmitter) -> JSON:
    amounts = {"cpu": submitter.cpu or _SUBMITTER_CPU, "memory": submitter.memory or _SUBMITTER_MEMORY}
    for name, amount in amounts.items():
        check_amount(amount, f"{name} for ray job submitter {amount} is not specified correctly")
    container = {
        "name": JOB_SUBMITTER,
        "image": submitter.image,
        "resources": {"limits": amounts, "requests": dict(amounts)},
    }
    return {"metadata": {}, "spec": {"containers": [container], "restartPolicy": "Never"}}


def from_ray_job(job: JSON) -> RayJob:
    """The job in a RayJob."""
    metadata, spec, status = job.get("metadata") or {}, job.get("spec") or {}, job.get("status") or {}
    labels, cluster_spec = metadata.get("labels") or {}, spec.get("rayClusterSpec")
    result = RayJob(
        name=metadata.get("name"),
        namespace=metadata.get("namespace"),
        user=labels.get(USER),
        version=(cluster_spec or {}).get("rayVersion"),
        entrypoint=spec.get("entrypoint"),
        metadata=spec.get("metadata"),
        runtime_env=spec.get("runtimeEnvYAML"),
        job_id=status.get("jobId"),
        shutdown_after_job_finishes=spec.get("shutdownAfterJobFinishes"),
        cluster_selector=spec.get("clusterSelector"),
        ttl_seconds_after_finished=spec.get("ttlSecondsAfterFinished"),
        entrypointNumCpus=spec.get("entrypointNumCpus"),
        entrypointNumGpus=spec.get("entrypointNumGpus"),
        entrypointResources=spec.get("entrypointResources"),
        activeDeadlineSeconds=spec.get("activeDeadlineSeconds"),
        created_at=to_timestamp(metadata.get("creationTimestamp")),
        delete_at=_moment(metadata.get("deletionTimestamp")),
        job_status=status.get("jobStatus"),
        job_deployment_status=status.get("jobDeploymentStatus"),
        message=status.get("message"),
        start_time=_moment(status.get("startTime")),
        end_time=_moment(status.get("endTime")),
        ray_cluster_name=status.get("rayClusterName"),
        labels=own_labels(labels),
    )
    if cluster_spec is not None:
        result.cluster_spec.CopyFrom(from_cluster_spec(cluster_spec))
    if (template := spec.get("submitterPodTemplate")) is not None:
        result.jobSubmitter.CopyFrom(_from_submitter(template))
    _read_additions(spec, result)
    return result


def _moment(text: str | None) -> Timestamp | None:
    return to_timestamp(text) if parse_time(text) else None


def _from_submitter(template: JSON) -> RayJobSubmitter:
    """The submitter's pod; amounts that are the defaults are not told."""
    [container, *_] = (template.get("spec") or {}).get("containers") or [{}]
    limits = (container.get("resources") or {}).get("limits") or {}
    cpu, memory = canonical(limits.get("cpu", "0")), canonical(limits.get("memory", "0"))
    return RayJobSubmitter(
        image=container.get("image"),
        cpu="" if cpu == _SUBMITTER_CPU else cpu,
        memory="" if memory == _SUBMITTER_MEMORY else memory,
    )


def _read_additions(spec: JSON, job: RayJob) -> None:
    """What KubeRay's API does not have. Defaults that the CRD fills in are not told."""
    if (mode := spec.get("submissionMode", "")) != "K8sJobMode":
        job.submission_mode = mode
    if limit := spec.get("backoffLimit"):
        job.backoff_limit = limit
    if spec.get("suspend") is not None:
        job.suspend = spec["suspend"]
    if strategy := spec.get("deletionStrategy"):
        job.deletion_strategy.CopyFrom(to_struct(strategy))
