"""Random lives of RayJobs in a small world: heads die, submitters fail, answers are late, users change their minds.

The promises of docs/rayjob.md hold on every walk, and a job always comes to an end once the world lets it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from raykeeper.api.meta import JSON
from raykeeper.api.raycluster import RayClusterStatus
from raykeeper.api.rayjob import RayJob
from raykeeper.operator.rayjob import facts as f
from raykeeper.operator.rayjob.facts import ClusterFacts, Facts, JobInfo, NoSuchJob, RayAnswer, Silence, SubmitterFacts
from raykeeper.operator.rayjob.machine import step
from raykeeper.operator.rayjob.observe import moment_of
from raykeeper.operator.settings import RayJobSettings
from support.rayjob_facts import NOW, a_cluster, a_job

WALKS = 60
STEPS = 400
ENDS = ("SUCCEEDED", "FAILED", "STOPPED")
RESTING = ("Complete", "Failed", "Suspended")
MODES = ("HTTPMode", "K8sJobMode", "SidecarMode")


@dataclass
class Head:
    """A head pod with the Ray in it."""

    uid: str
    restarts: int = 0
    jobs: dict[str, str] = field(default_factory=dict)
    shown_restarts: int = 0
    """As the kubelet has told."""

    @property
    def shown(self) -> str:
        return f"{self.uid}/{self.shown_restarts}"


@dataclass
class Submitter:
    """A submitter Job, or the container beside a head; it gives its job to Ray once."""

    job_id: str
    cluster: str
    has_submitted: bool = False
    end: str = ""
    word: str = ""
    ended_at: datetime | None = None


@dataclass
class Cluster:
    name: str
    head: Head | None = None
    is_ready: bool = False
    is_going: bool = False
    sidecar: Submitter | None = None
    has_lost_head: bool = False
    """As the cluster says where a successor would submit the job again."""


class World:
    """One RayJob and all that it has to do with."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.mode = self.dice.choice(MODES)
        spec: JSON = {"submissionMode": self.mode, "shutdownAfterJobFinishes": True}
        spec["backoffLimit"] = self.dice.choice([0, 1, 3])
        if self.mode != "SidecarMode" and self.dice.random() < 0.3:
            spec["retryRayClusterStrategy"] = "ReuseRayCluster"
        if self.dice.random() < 0.2:
            spec["activeDeadlineSeconds"] = 900
        self.job: RayJob = a_job(**spec)
        self.now = NOW
        self.clusters: dict[str, Cluster] = {}
        self.submitter: Submitter | None = None
        self.is_silent = False
        self.answer: tuple[str, RayAnswer] | None = None
        """What Ray last said, and at which moment it was asked."""
        self.question = ""
        """What the operator wants to know now."""
        self.given: list[str] = []
        """Ids of jobs in the order in which Ray took them, from whomever."""
        self.numbers = 0
        self.told: list[str] = []

    # What the operator sees

    @property
    def cluster(self) -> Cluster | None:
        return self.clusters.get(self.job.status.ray_cluster_name)

    def facts(self) -> Facts:
        self.numbers += 1
        known = Facts(
            cluster=self._cluster_facts(),
            submitter=_told_of(self.submitter),
            random_end=f"n{self.numbers:04}",
            settings=RayJobSettings(),
        )
        moment = f"{self.job.status.job_id} {moment_of(self.job, known)}"
        is_asked = self.job.status.job_deployment_status == "Running" and known.cluster is not None
        if self.answer is not None and (self.answer[0] != moment or not is_asked):
            self.answer = None
        self.question = moment if is_asked else ""
        return replace(known, ray=self.answer[1] if self.answer else None)

    def _cluster_facts(self) -> ClusterFacts | None:
        cluster = self.cluster
        if cluster is None:
            return None
        return a_cluster(
            name=cluster.name,
            uid=f"uid-{cluster.name}",
            is_going=cluster.is_going,
            status=RayClusterStatus(state="ready" if cluster.is_ready else ""),
            head_instance=cluster.head.shown if cluster.head else "",
            has_lost_head=cluster.has_lost_head,
            is_head_ready=cluster.head is not None,
            sidecar=_told_of(cluster.sidecar) if cluster.head else None,
            submission_mode=self.mode,
        )

    def reconcile(self) -> None:
        before = self.job.status
        taken = step(self.job, self.facts(), self.now)
        for action in taken.actions:
            if not self._do(action):
                return  # refused: the status that was to follow is not written
        self.job = msgspec.structs.replace(self.job, status=taken.status)
        self.told.append(f"{taken.status.job_deployment_status}/{taken.status.job_status}/{taken.status.reason}")
        if taken.status.reason == "SubmissionFailed" and before.reason != "SubmissionFailed":
            assert not self._is_alive(before.job_id), "Ray has the job, whatever became of its submitter"
        if before.job_status == "SUCCEEDED" and before.job_deployment_status == "Running":
            assert taken.status.job_status == "SUCCEEDED"
            assert taken.status.job_deployment_status in ("Running", "Complete")

    def _is_alive(self, job_id: str) -> bool:
        head = self.cluster.head if self.cluster else None
        return head is not None and head.jobs.get(job_id, "STOPPED") not in ENDS

    def _do(self, action: f.Action) -> bool:
        match action:
            case f.CreateCluster(name):
                alive = [one for one in self.clusters.values() if not one.is_going]
                assert not alive, "two clusters of one job"
                self.clusters[name] = Cluster(name)
            case f.CreateSubmitter():
                if self.submitter is None:
                    self.submitter = Submitter(self.job.status.job_id, self.job.status.ray_cluster_name)
            case f.SubmitJob(job_id):
                return self._submit(job_id, self.cluster)
            case f.DeleteCluster(name):
                self.clusters[name].is_going = True
            case f.DeleteSubmitter():
                self.submitter = None
            case f.StopJob(job_id):
                if self.cluster and self.cluster.head and job_id in self.cluster.head.jobs and not self.is_silent:
                    self.cluster.head.jobs[job_id] = "STOPPED"
            case _:
                pass
        return True

    def _submit(self, job_id: str, cluster: Cluster | None) -> bool:
        """Whether Ray has the job now."""
        if cluster is None or cluster.head is None or self.is_silent:
            return False
        if job_id not in cluster.head.jobs:
            cluster.head.jobs[job_id] = "PENDING"
            self.given.append(job_id)
        return True

    # What happens

    def poll(self) -> None:
        """Ray is asked what the operator last wanted to know."""
        cluster, status = self.cluster, self.job.status
        if not self.question:
            return
        if cluster is None or cluster.head is None or self.is_silent:
            self.answer = (self.question, Silence("no answer"))
            return
        found = cluster.head.jobs.get(status.job_id)
        ended = self.now if found in ENDS else None
        self.answer = (self.question, JobInfo(found, "", self.now, ended) if found else NoSuchJob())

    def progress(self) -> None:
        """Everybody does a bit of his work."""
        for cluster in list(self.clusters.values()):
            if cluster.is_going:
                del self.clusters[cluster.name]
            elif cluster.head is None and not cluster.has_lost_head:
                self.numbers += 1
                cluster.head = Head(f"head{self.numbers}")
                if self.mode == "SidecarMode":
                    cluster.sidecar = Submitter(self.job.status.job_id, cluster.name)
            elif cluster.head is not None:
                cluster.is_ready = True
            if cluster.head:
                cluster.head.shown_restarts = cluster.head.restarts
                for job_id, status in cluster.head.jobs.items():
                    if status not in ENDS:
                        cluster.head.jobs[job_id] = "RUNNING"
            self._submits(cluster.sidecar)
        self._submits(self.submitter)

    def _submits(self, submitter: Submitter | None) -> None:
        if submitter is None or submitter.end:
            return
        cluster = self.clusters.get(submitter.cluster)
        if not submitter.has_submitted:
            submitter.has_submitted = self._submit(submitter.job_id, cluster)
        elif cluster and cluster.head and not self.is_silent:
            status = cluster.head.jobs.get(submitter.job_id, "")
            if status in ENDS:
                self._end(submitter, "Complete", status)
            elif not status:
                self._end(submitter, "Failed")

    def _end(self, submitter: Submitter, end: str, word: str = "") -> None:
        submitter.end, submitter.word, submitter.ended_at = end, word, self.now

    def job_ends(self, how: str) -> None:
        if self.cluster and self.cluster.head:
            jobs = self.cluster.head.jobs
            if jobs.get(self.job.status.job_id, "SUCCEEDED") not in ENDS:
                jobs[self.job.status.job_id] = how

    def head_dies(self) -> None:
        if self.cluster and self.cluster.head:
            self.cluster.head = None
            self.cluster.has_lost_head = self.mode == "SidecarMode"

    def ray_restarts(self) -> None:
        """The kubelet tells of it later."""
        if self.cluster and self.cluster.head:
            self.cluster.head.restarts += 1
            self.cluster.head.jobs.clear()

    def submitter_fails(self) -> None:
        for submitter in (self.submitter, self.cluster.sidecar if self.cluster else None):
            if submitter is not None and not submitter.end:
                self._end(submitter, "Failed")

    def submitter_is_deleted(self) -> None:
        self.submitter = None

    def edit(self, **spec: Any) -> None:
        self.job = msgspec.structs.replace(self.job, spec=msgspec.structs.replace(self.job.spec, **spec))

    def happens(self) -> None:
        """One of all these, or nothing."""
        events: list[Callable[[], None]] = [
            self.reconcile,
            self.poll,
            self.progress,
            lambda: self.pass_time(self.dice.choice([1, 5, 40, 400])),
            lambda: self.job_ends(self.dice.choice(ENDS)),
            self.head_dies,
            self.ray_restarts,
            self.submitter_fails,
            self.submitter_is_deleted,
            self.toggle_silence,
            lambda: self.edit(suspend=not self.job.spec.suspend),
        ]
        [event] = self.dice.choices(events, weights=[40, 20, 20, 8, 4, 1, 1, 1, 1, 2, 1])
        event()

    def pass_time(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def toggle_silence(self) -> None:
        self.is_silent = not self.is_silent

    def calm_down(self) -> None:
        """Nothing bad happens any more, and the job succeeds."""
        self.is_silent = False
        self.edit(suspend=False)
        for _ in range(STEPS):
            for turn in (self.progress, self.reconcile, self.poll, self.reconcile):
                turn()
            self.job_ends("SUCCEEDED")
            self.pass_time(60)


def _told_of(submitter: Submitter | None) -> SubmitterFacts | None:
    if submitter is None:
        return None
    return SubmitterFacts(
        has_finished=bool(submitter.end),
        has_failed=submitter.end == "Failed",
        finished_at=submitter.ended_at,
        ray_status=submitter.word,
    )


@pytest.mark.parametrize("seed", range(WALKS))
def test_no_attempt_is_given_to_ray_twice_and_every_job_comes_to_an_end(seed: int) -> None:
    world = World(seed)
    for _ in range(STEPS):
        world.happens()
        assert len(world.given) == len(set(world.given)), (world.mode, world.given, world.told[-12:])
        assert world.job.status.failed <= world.job.spec.backoff_limit + 1, world.told[-12:]
    world.calm_down()
    assert world.job.status.job_deployment_status in RESTING, world.told[-12:]
    assert not world.clusters, "a cluster was left behind"
