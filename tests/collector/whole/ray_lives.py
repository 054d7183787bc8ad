"""One life of a real cluster with its collectors: started, worked in, killed about, ended; then there is its store."""

from __future__ import annotations

import random
import shlex
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bed.ports import free_port
from bed.waiting import wait_until
from raykeeper.layout.keys import SessionId
from support.collector_processes import CollectorProcess, ended
from support.ray_clusters import TOKEN, RayCluster, RayNode, ray_cluster
from support.stored_sessions import StoredSession

WORK = Path(__file__).with_name("programs") / "varied_work.py"
ELSEWHERE = """
import pathlib, sys, time, ray
ray.init()
work = ray.remote(num_cpus=0.1, resources={"elsewhere": 1})(lambda text: print(text))
ray.get([work.options(name="again").remote("said by the second raylet") for _ in range(20)])
while not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.1)
"""
"""Ends when told to: Ray's workers report once a second, and those of a job that has ended never do."""
PLACEMENT_GROUPS = "/api/v0/placement_groups?detail=1&limit=10000"
SERVE = "/api/serve/applications/"
NAMESPACE, CLUSTER = "team-a", "train"
JOB_SECONDS = 240.0
EQUAL_SECONDS = 180.0
QUICK = (  # everything goes to the bucket within seconds, so that kills meet every stage of it
    *("--seal-age=500ms", "--idle-seal-age=1s", "--user-log-interval=500ms", "--component-log-interval=2s"),
    *("--poll-interval=1s", "--grace-period=20s", "--metrics-addr=127.0.0.1:0"),
)


@dataclass
class RayLife:
    """A cluster of a head and a worker, a collector beside each, and one store for both."""

    cluster: RayCluster
    folder: Path
    head_sink: int = field(default_factory=free_port)
    worker_sink: int = field(default_factory=free_port)
    namespace: str = NAMESPACE
    cluster_uid: str = ""
    """Of the RayCluster that Kubernetes knows it as."""

    def __post_init__(self) -> None:
        self.worker_root = self.cluster.new_root()
        self.head_collector = self._collector("head", self.cluster.head_root, self.head_sink)
        self.worker_collector = self._collector("worker", self.worker_root, self.worker_sink)
        self.head: RayNode
        self.worker: RayNode
        self._end_of_work = self.folder / "work-may-end"
        self.published: dict[str, int] = {}
        """By node, what its agent said to have published when the store had exactly as many events of that node."""

    @property
    def stored(self) -> StoredSession:
        return StoredSession(self.folder / "store", SessionId(self.namespace, CLUSTER, self.head.session.name))

    def start(self) -> None:
        """Collectors first, as native sidecars."""
        for collector in (self.head_collector, self.worker_collector):
            collector.start().wait_for("listening for Ray")
        self.head = self.cluster.start_head(self.head_sink)
        self.worker = self.cluster.start_worker(self.worker_root, self.worker_sink)

    def submit_work(self, seconds: float) -> None:
        """A job that works for at least so long, and then until `end_work`; and one that fails."""
        python = shlex.quote(str(self.cluster.python))
        arguments = [str(WORK), str(seconds), str(free_port()), str(self._end_of_work)]
        self.cluster.submit("works", f"{python} {shlex.join(arguments)}")
        self.cluster.submit("fails", f"{python} -c 'import sys; sys.exit(3)'")

    def end_work(self) -> None:
        """Return once the long job has ended, which lives until what it made was polled."""
        wait_until("the collector has polled what the job made", self.was_polled, JOB_SECONDS)
        self._end_of_work.touch()
        self.wait_for_jobs(works="SUCCEEDED", fails="FAILED")

    def was_polled(self) -> bool:
        """Whether what events do not carry is in the store: placement groups of two states, and an application."""
        groups = [row for answer in self.stored.polled(PLACEMENT_GROUPS) for row in answer["data"]["result"]["result"]]
        applications = [answer["applications"] for answer in self.stored.polled(SERVE)]
        return {("kept", "CREATED"), ("removed", "REMOVED")} <= {(row["name"], row["state"]) for row in groups} and any(
            found.get("greeter", {}).get("status") == "RUNNING" for found in applications
        )

    def run_work_elsewhere(self) -> None:
        """Let the worker node that there is now do something; return once its job has ended and Ray knows of it all."""
        is_known = self.folder / "work-elsewhere-is-known"
        command = [str(self.cluster.python), "-c", ELSEWHERE, str(is_known)]
        self.cluster.submit("again", shlex.join(command))

        def have_reported() -> bool:
            tasks = self.cluster.tasks("again")
            return len(tasks) == 20 and all(task["worker_pid"] for task in tasks)

        wait_until("all workers of the second raylet have reported", have_reported, JOB_SECONDS)
        is_known.touch()
        self.wait_for_jobs(again="SUCCEEDED")

    def kill_collectors(self, times: int, dice: random.Random) -> None:
        """Kill one of the collectors at random moments, and start it again at once."""
        for _ in range(times):
            collector = dice.choice((self.head_collector, self.worker_collector))
            time.sleep(dice.uniform(0.2, 2.5))
            collector.kill()
            collector.start()

    def wait_for_jobs(self, **expected: str) -> None:
        """Return once all of them ended as expected."""

        def are_over() -> bool:
            statuses = self.cluster.job_statuses()
            for name in expected.keys() & statuses.keys():
                is_over = statuses[name] in ("SUCCEEDED", "FAILED", "STOPPED")
                assert not is_over or statuses[name] == expected[name], self._log_of_job(name)
            return expected.items() <= statuses.items()

        wait_until(f"jobs end as {expected}", are_over, JOB_SECONDS)

    def wait_until_all_is_stored(self, node: RayNode) -> None:
        """Return at a moment when the store has as many different events of a node as its agent has published."""
        node_id = node.node_ids()[-1]

        def is_equal() -> bool:
            published = node.published_events()
            events = self.stored.events().get(node_id, [])
            self.published[node_id] = published or 0
            counts[:] = [published or 0, len({event["eventId"] for event in events})]
            return published is not None and counts[0] == counts[1]

        counts: list[int] = []
        try:
            wait_until("the store has what Ray has published", is_equal, EQUAL_SECONDS)
        except Exception as exc:
            raise AssertionError(f"published and stored of {node_id}: {counts}") from exc

    def restart_worker(self) -> None:
        """Ray's container is restarted in its pod: another raylet in the same folder."""
        self.worker.process.stop(timeout=120.0)
        self.worker.kill()
        self.worker = self.cluster.start_worker(self.worker_root, self.worker_sink, life=1)

    def stop_ray(self) -> None:
        """Workers first, then the head; what is left of them is killed."""
        for node in (self.worker, self.head):
            node.process.stop(timeout=120.0)
            node.kill()

    def _log_of_job(self, name: str) -> str:
        return (self.head.session / "logs" / f"job-driver-{name}.log").read_text()[-3000:]

    def _collector(self, role: str, root: Path, sink: int) -> CollectorProcess:
        environment = {
            "RAY_TMP_ROOT": str(root),
            "RAY_CLUSTER_NAMESPACE": self.namespace,
            "RAY_CLUSTER_UID": self.cluster_uid,
            "POD_NAME": f"{CLUSTER}-{role}-x7k2p",
            "RAY_AUTH_TOKEN": TOKEN,
            "RAY_DASHBOARD_ADDRESS": self.cluster.dashboard,
        }
        flags = [f"--role={role}", f"--ray-cluster-name={CLUSTER}", f"--store-url=file://{self.folder}/store"]
        return CollectorProcess(
            self.folder / f"collector-{role}.log", [*flags, f"--events-port={sink}", *QUICK], environment
        )


@contextmanager
def a_ray_life(
    folder: Path,
    version: str,
    environment: Mapping[str, str] | None = None,
    *,
    namespace: str = NAMESPACE,
    cluster_uid: str = "",
) -> Iterator[RayLife]:
    """A cluster whose nodes and collectors are gone after the block; Ray has that environment too."""
    with ray_cluster(folder / "ray", version, environment) as cluster:
        life = RayLife(cluster, folder, namespace=namespace, cluster_uid=cluster_uid)
        with ended(life.head_collector, life.worker_collector):
            yield life
