"""What the server tells Prometheus about itself."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_1_0_0
from starlette.requests import Request
from starlette.responses import Response

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


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

    async def answer(self, _: Request) -> Response:
        return Response(generate_latest(self.registry), media_type=CONTENT_TYPE_PLAIN_1_0_0)
