"""What an answer of the API server means: which error of ours it is, and whether to ask again. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

import msgspec

from raykeeper.errors import Unavailable
from raykeeper.kube.errors import ApiError, api_error

MAX_ATTEMPTS = 10
"""How often one request is sent in all before its refusal is passed on; client-go's number."""
MAX_RETRY_AFTER_SECONDS = 30.0
"""A server that asks for a longer pause is believed, but the caller's back-off waits, not a held worker."""
DEFAULT_RETRY_AFTER_SECONDS = 1.0
"""For a 429 without the header; what the API server itself sends."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole HTTP answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class StatusDetails(msgspec.Struct, gc=False, rename="camel"):
    retry_after_seconds: int = 0


class Status(msgspec.Struct, gc=False, rename="camel"):
    """Kubernetes' own error object, in the body of a refusal or in a watch event of type ERROR."""

    kind: str = ""
    status: str = ""
    code: int = 0
    reason: str = ""
    message: str = ""
    details: StatusDetails | None = None


_status_decoder = msgspec.json.Decoder(Status)


def parse_status(body: bytes) -> Status | None:
    """The Status in a body; None where something else stands there, such as a load balancer's page."""
    try:
        status = _status_decoder.decode(body)
    except msgspec.DecodeError:
        return None
    return status if status.kind == "Status" and status.status != "Success" else None


def error_of(service: str, about: str, answer: Answer) -> ApiError | Unavailable:
    """The error that a refusal (status 300 and above) is raised as."""
    status = parse_status(answer.body) or Status(message=_first_line(answer.body))
    wait = retry_after(answer.headers)
    if wait is None and status.details and status.details.retry_after_seconds:
        wait = float(status.details.retry_after_seconds)
    reason = status.reason or phrase(answer.status)
    return api_error(about, answer.status, reason, status.message, retry_after=wait, service=service)


def is_own_refusal(answer: Answer) -> bool:
    """Whether an answer that came through the API server's proxy was made by the API server itself.

    Assumes that no proxied server answers with a Kubernetes Status. The one refusal of the API server that is plain
    text is that of its own queues.
    """
    return parse_status(answer.body) is not None or (answer.status == 429 and answer.body.strip() == _QUEUES_FULL)


_QUEUES_FULL = b"Too many requests, please try again later."


def retry_delay(method: str, answer: Answer, attempts: int) -> float | None:
    """Seconds until the same request may be sent again; None where the answer is final.

    429, and 503 with Retry-After, are sent before anything was done, so even a create may be repeated. Other
    server errors with Retry-After may come after the deed: only what is safe to repeat is.
    """
    wait = retry_after(answer.headers)
    if answer.status == 429:
        wait = DEFAULT_RETRY_AFTER_SECONDS if wait is None else wait
    elif answer.status < 500 or (answer.status != 503 and method != "GET"):
        return None
    if wait is None or wait > MAX_RETRY_AFTER_SECONDS or attempts >= MAX_ATTEMPTS:
        return None
    return wait


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds of the Retry-After header; its other form, a date, is never sent by an API server."""
    text = headers.get("Retry-After", "")
    return float(text) if text.isdecimal() else None


def _first_line(body: bytes) -> str:
    return body[:200].decode(errors="replace").strip().partition("\n")[0] or "no explanation"


def phrase(status: int) -> str:
    """A reason for answers that carry none of Kubernetes' own, such as those of a load balancer."""
    return HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "unknown status"
