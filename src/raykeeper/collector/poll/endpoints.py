"""Which paths of the dashboard are asked, how often, and what in their answers is no news.

Not asked, because they arrive another way: actors, tasks, nodes and workers (events), `/events` (made from files under
`logs/`), and what the history server answers for itself (authentication mode, profiling, Grafana's health).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from urllib.parse import quote

from raykeeper.collector.poll.measured import has_unmeasured_nodes

VERSION = "/api/version"
METADATA = "/api/v0/cluster_metadata"
TIMEZONE = "/timezone"
CLUSTER_ID = "/cluster_id"
JOBS = "/api/jobs/"
SERVE = "/api/serve/applications/"
NODE_STATISTICS = "/nodes?view=summary"
_DATASETS = "/api/data/datasets/"
STATISTICS_ACTOR = "_StatsActor"  # Ray Data's, called so in every Ray that sends events
TRAIN_ACTOR = "TrainStateActor"  # Ray Train's, likewise

STATISTICS_SECONDS = 60.0  # 60 of the 150 objects that an idle head may make in an hour
QUICK_SECONDS = 10.0  # jobs that just began often fail soon: the next look comes early
MAX_ANSWER_BYTES = 16 << 20
"""Of an answer; 10,000 jobs have 10 MB. A few are on their way at the same time before a head's end."""
MAX_STATISTICS_BYTES = 32 << 20  # those of 1,500 nodes
RUNNING_JOB_SECONDS = 5.0  # a head that is killed takes along how its jobs ended since the last look


@dataclass(frozen=True)
class Endpoint:
    """One path, and when its answer is worth an object."""

    name: str
    """As Ray's frontend asks it: the answer is stored under this name."""
    period_seconds: float
    ask: str = ""
    """The path that is really asked, where it differs."""
    volatile: frozenset[str] = frozenset()
    """Keys at the top of the answer that change although nothing happened."""
    is_fact: bool = False
    """Never changes within a session: asked until it was answered once."""
    is_sample: bool = False
    """Differs with every look: each answer is stored, none is compared."""
    is_quick: bool = False
    """A change is likely to be followed by another: asked again sooner."""
    is_unfinished: Callable[[bytes], bool] | None = None
    """Whether an answer lacks what the next will have: it is asked again sooner."""
    is_about_something: bool = False
    """An answer that lists nothing is not stored."""
    limit_bytes: int = MAX_ANSWER_BYTES
    """A larger answer is not kept, which is told."""
    actor_class: str = ""
    """Where no actor of this class lives there is nothing to tell: the dashboard would fail, or even make one."""

    @property
    def path(self) -> str:
        return self.ask or self.name


def polled_endpoints(poll_seconds: float, additional: Iterable[str] = ()) -> tuple[Endpoint, ...]:
    """What is asked of every session, the most telling first: the last poll may run out of time.

    `/nodes` is cached by Ray, and the first answer after a pause is as old as the pause: hence `nocache`.
    """
    slow_seconds = max(poll_seconds, STATISTICS_SECONDS)
    changing = (
        Endpoint(JOBS, poll_seconds, is_quick=True),
        Endpoint(SERVE, poll_seconds, volatile=frozenset({"controller_health_metrics"})),
        Endpoint("/api/v0/placement_groups?detail=1&limit=10000", poll_seconds),
        Endpoint("/api/train/v2/runs/v1", poll_seconds, is_about_something=True, actor_class=TRAIN_ACTOR),
        Endpoint("/api/cluster_status?format=1", slow_seconds),
        Endpoint(
            NODE_STATISTICS,
            slow_seconds,
            ask=f"{NODE_STATISTICS}&nocache=1",
            is_sample=True,
            is_unfinished=has_unmeasured_nodes,
            limit_bytes=MAX_STATISTICS_BYTES,
        ),
    )
    facts = tuple(Endpoint(name, poll_seconds, is_fact=True) for name in (VERSION, METADATA, TIMEZONE, CLUSTER_ID))
    builtin = {endpoint.name for endpoint in (*facts, *changing)}
    users = dict.fromkeys(additional)
    return (*facts, *changing, *(Endpoint(path, poll_seconds) for path in users if path not in builtin))


def dataset_endpoint(job_id: str, poll_seconds: float) -> Endpoint:
    """Ray Data's datasets of one job."""
    path = f"{_DATASETS}{quote(job_id, safe='')}"
    return Endpoint(path, poll_seconds, is_about_something=True, actor_class=STATISTICS_ACTOR)
