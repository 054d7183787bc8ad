"""Counts requests. Label lookups are done once for each combination, because a lookup costs more than the counting."""

from __future__ import annotations

from functools import cache

from raykeeper.kube.metrics import KubeMetrics


class RequestMetrics:
    """The client's share of `KubeMetrics` for one server."""

    def __init__(self, metrics: KubeMetrics, host: str) -> None:
        self._requests = cache(lambda code, method: metrics.requests.labels(code, method, host).inc)
        self._seconds = cache(lambda method: metrics.request_seconds.labels(method, host).observe)
        self._waits = cache(lambda method: metrics.rate_limiter_seconds.labels(method, host).observe)
        self._sent_bytes = cache(lambda method: metrics.request_bytes.labels(method, host).observe)
        self._read_bytes = cache(lambda method: metrics.response_bytes.labels(method, host).observe)
        self._retries = cache(lambda code, method: metrics.retries.labels(code, method, host).inc)

    def waited(self, method: str, seconds: float) -> None:
        self._waits(method)(seconds)

    def answered(self, method: str, status: int, seconds: float) -> None:
        self._requests(status, method)()
        self._seconds(method)(seconds)

    def sent(self, method: str, size: int) -> None:
        self._sent_bytes(method)(size)

    def read(self, method: str, size: int) -> None:
        self._read_bytes(method)(size)

    def unanswered(self, method: str) -> None:
        self._requests("<error>", method)()

    def repeated(self, method: str, status: int) -> None:
        self._retries(status, method)()
