"""What the server tells Prometheus about itself."""

from __future__ import annotations

import re
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, Metric, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_1_0_0
from starlette.responses import Response

NAMESPACE_LABEL = "session_namespace"
"""Of series about one namespace of the history."""
OTHER_CAUSES = "other"
MOST_CAUSES = 100
"""Labels; there are about half as many rules."""
_RULE = re.compile(r"[a-z][a-z_]{0,39}")
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class CauseLabels:
    """Kinds of causes as labels: the first that are seen, and one for all others. Summaries may say anything."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def label(self, rule: str) -> str:
        if rule not in self._known and len(self._known) < MOST_CAUSES and _RULE.fullmatch(rule):
            self._known.add(rule)
        return rule if rule in self._known else OTHER_CAUSES


class HistoryMetrics:
    """Counters of one process. Labels are paths as routes spell them, so that no name of a session is among them."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "raykeeper_history_requests",
            "Requests answered, by route and status.",
            ("route", "status"),
            registry=self.registry,
        )
        self.seconds = Histogram(
            "raykeeper_history_request_seconds",
            "Time until an answer begins.",
            ("route",),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.bugs = Counter(
            "raykeeper_history_bugs",
            "Requests that failed by an error nobody foresaw; the log has the traceback.",
            registry=self.registry,
        )

        self.causes = CauseLabels()
        self.failed_jobs = Counter(
            "raykeeper_history_failed_jobs",
            "Jobs that failed, by kind of cause, counted by the server that first read their session to its end.",
            ("cause",),
            registry=self.registry,
        )

    def count_failed_job(self, rule: str) -> None:
        self.failed_jobs.labels(self.causes.label(rule)).inc()

    def answer(self, *, names_namespaces: bool) -> Response:
        """All metrics, or those that name no namespace."""
        told = self.registry if names_namespaces else _WithoutNamespaces(self.registry)
        return Response(generate_latest(told), media_type=CONTENT_TYPE_PLAIN_1_0_0)


class _WithoutNamespaces(CollectorRegistry):
    """A registry as those may see it of whom nobody knows what they may see."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__()
        self._whole = registry

    def collect(self) -> Iterator[Metric]:
        for family in self._whole.collect():
            if not any(NAMESPACE_LABEL in sample.labels for sample in family.samples):
                yield family
