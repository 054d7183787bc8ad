"""What `HttpFaults` does to which request. Pure, but for the counting of hits."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass
class Fault:
    """One rule. Without `status` the connection is cut instead of answered.

    `times` is how often it still strikes (None: for ever), `hits` how often it did.
    """

    status: int | None = None
    method: str | None = None
    path: str = ""
    """Regular expression searched for in the path with its query."""
    retry_after: int | None = None
    """Seconds for the `Retry-After` header; only with `status`."""
    times: int | None = None
    probability: float = 1.0
    after_acting: bool = False
    """Whether the API server gets the request first: it acts, and only its answer is lost or replaced."""
    hits: int = 0

    def strikes(self, method: str, path: str, dice: float) -> bool:
        """Whether this rule is for such a request; `dice` in [0, 1) decides where the probability is below 1."""
        if self.times is not None and self.hits >= self.times:
            return False
        fits = self.method in (None, method) and re.search(self.path, path) is not None
        return fits and dice < self.probability


def first_strike(faults: Iterable[Fault], method: str, path: str, dice: float) -> Fault | None:
    """The first rule that strikes, with its hit counted; None when the request is left alone."""
    for fault in faults:
        if fault.strikes(method, path, dice):
            fault.hits += 1
            return fault
    return None


REASONS = {429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout"}


def status_body(fault: Fault) -> dict[str, object]:
    """The `Status` object that an API server sends with such an error."""
    body: dict[str, object] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "injected by the test bed",
        "reason": REASONS.get(fault.status or 0, "Unknown"),
        "code": fault.status,
    }
    if fault.retry_after is not None:
        body["details"] = {"retryAfterSeconds": fault.retry_after}
    return body
