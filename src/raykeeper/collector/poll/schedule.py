"""When each endpoint of one session is asked next, and whether its answer is stored. No I/O; time is an argument."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from raykeeper.backoff import Backoff
from raykeeper.collector.poll.endpoints import JOBS, QUICK_SECONDS, RUNNING_JOB_SECONDS, Endpoint, dataset_endpoint
from raykeeper.collector.poll.jobs import JobRow
from raykeeper.collector.poll.sameness import fingerprint, says_nothing
from raykeeper.ray.dashboard import Answer

MAX_FAILURE_SECONDS = 600.0  # Serve may not be installed: that is asked again, but rarely
MAX_PAUSE_SECONDS = 60.0  # of what was answered before: a busy head must not cost ten minutes of what it says later
FAILURES_AFTER_END = 2  # of a job whose datasets nobody can change any more
QUIET_SECONDS = 300.0
"""Longest pause of a question that makes a task in the lists of users, while its answers stay the same."""
JOBS_PER_ROUND = 20  # datasets are asked of Ray's own actor, which has other work
LIGHT_BODY_BYTES = 2 << 20
"""An answer larger than this is asked for proportionally less often: 1,000 nodes' statistics are 20 MB."""


@dataclass
class _Track:
    """What is remembered of one endpoint."""

    endpoint: Endpoint
    due_at: float
    stored: bytes | None = None
    has_answered: bool = False
    failures: int = 0
    unchanged: int = 0
    is_done: bool = False
    is_job_over: bool = False


class SessionPolls:
    """The polls of one session: begins anew with everything due."""

    def __init__(self, endpoints: Sequence[Endpoint], poll_seconds: float, now: float) -> None:
        self._poll_seconds = poll_seconds
        self._tracks = {endpoint.name: _Track(endpoint, now) for endpoint in endpoints}
        self._jobs: dict[str, _Track] = {}

    def due(self, now: float) -> list[Endpoint]:
        """What to ask now; of the jobs' datasets those that waited longest."""
        ready = [track.endpoint for track in self._tracks.values() if track.due_at <= now and not track.is_done]
        waiting = [track for track in self._jobs.values() if track.due_at <= now and not track.is_done]
        waiting.sort(key=lambda track: track.due_at)
        return ready + [track.endpoint for track in waiting[:JOBS_PER_ROUND]]

    def last(self) -> list[Endpoint]:
        """What to ask before the head is gone: all that may have changed, the newest jobs first."""
        changing = [track.endpoint for track in self._tracks.values() if not track.is_done]
        jobs = [track for track in self._jobs.values() if not track.is_done or track.stored is None]
        return changing + [track.endpoint for track in jobs[::-1][:JOBS_PER_ROUND]]

    def next_at(self) -> float:
        """When something is due again."""
        tracks = (*self._tracks.values(), *self._jobs.values())
        return min((track.due_at for track in tracks if not track.is_done), default=float("inf"))

    def see_jobs(self, jobs: dict[str, JobRow], now: float) -> None:
        """Follow the datasets of the jobs that are listed now, and look at the list soon again while one runs."""
        if JOBS in self._tracks and any(not job.is_over for job in jobs.values()):
            track = self._tracks[JOBS]
            track.due_at = min(track.due_at, now + RUNNING_JOB_SECONDS)
        if jobs.keys() - self._jobs.keys():
            self._wake_libraries(now)
        for gone in self._jobs.keys() - jobs.keys():
            del self._jobs[gone]
        for job_id, job in jobs.items():
            track = self._jobs.setdefault(job_id, _Track(dataset_endpoint(job_id, self._poll_seconds), now))
            track.is_job_over = job.is_over

    def _wake_libraries(self, now: float) -> None:
        """A new job may use what was quiet for long."""
        for track in self._tracks.values():
            if track.endpoint.actor_class:
                track.unchanged = 0
                track.due_at = min(track.due_at, now + track.endpoint.period_seconds)

    def answered(self, endpoint: Endpoint, answer: Answer, now: float) -> bool:
        """Whether the answer is stored: it is one, and says something new."""
        if (track := self._track(endpoint)) is None:
            return False
        if not answer.is_ok:
            self.failed(endpoint, now)
            return False
        track.has_answered, track.failures = True, 0
        seen = None if endpoint.is_sample else fingerprint(answer.body, endpoint.volatile)
        is_empty = endpoint.is_about_something and says_nothing(answer.body)
        is_news = (seen is None or seen != track.stored) and not is_empty
        track.is_done = endpoint.is_fact or (track.is_job_over and not is_news)
        is_quick = (endpoint.is_quick and is_news) or bool(
            endpoint.is_unfinished and endpoint.is_unfinished(answer.body)
        )
        track.unchanged = 0 if is_news else track.unchanged + 1
        pause = _pause(endpoint, len(answer.body), is_quick=is_quick)
        track.due_at = now + (_quiet(pause, track.unchanged) if endpoint.actor_class else pause)
        if is_news:
            track.stored = seen
        return is_news

    def failed(self, endpoint: Endpoint, now: float) -> None:
        """Ask less and less often for what is not answered."""
        if (track := self._track(endpoint)) is None:
            return
        track.failures += 1
        longest = max(endpoint.period_seconds, MAX_PAUSE_SECONDS) if track.has_answered else MAX_FAILURE_SECONDS
        track.due_at = now + Backoff(base=endpoint.period_seconds, limit=longest).delay(track.failures + 1)
        track.is_done = track.is_job_over and track.failures >= FAILURES_AFTER_END

    def _track(self, endpoint: Endpoint) -> _Track | None:
        known = self._tracks.get(endpoint.name)
        return known or next((track for track in self._jobs.values() if track.endpoint == endpoint), None)


def _pause(endpoint: Endpoint, size: int, *, is_quick: bool) -> float:
    period = min(endpoint.period_seconds, QUICK_SECONDS) if is_quick else endpoint.period_seconds
    return period * max(1.0, size / LIGHT_BODY_BYTES)


def _quiet(pause: float, unchanged: int) -> float:
    """Twice as long after each answer that was no news."""
    return max(pause, min(pause * 2.0 ** min(unchanged, 10), QUIET_SECONDS))
