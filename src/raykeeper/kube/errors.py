"""What the API server can answer instead of the thing asked for, one class per case a caller handles differently."""

from __future__ import annotations

from raykeeper.errors import RaykeeperError, Unavailable


class ApiError(RaykeeperError):
    """The API server refused a request; `str()` names the request, the status and the server's own sentence."""

    def __init__(self, request: str, status: int, reason: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(f"{request}: {status} {reason}: {message}")
        self.request = request
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after


class BadRequest(ApiError):
    """400: our request makes no sense to the server."""


class Unauthorized(ApiError):
    """401: the credentials are missing, expired or unknown."""


class Forbidden(ApiError):
    """403: RBAC, a quota or an admission plugin said no."""


class NotFound(ApiError):
    """404: the object or the kind is not there."""


class Conflict(ApiError):
    """409: the object changed since it was read, or another field manager owns a field."""


class AlreadyExists(Conflict):
    """409 AlreadyExists: a create lost against an earlier one of the same name."""


class Expired(ApiError):
    """410: the resource version or continue token is older than what etcd still knows; list again."""


class Invalid(ApiError):
    """422: schema validation, a CEL rule or an admission policy refused the object."""


class TooManyRequests(ApiError):
    """429 after our own retries were used up."""


class NotDone(Unavailable):
    """No answer, or one that says so: the request certainly changed nothing."""


class NotLeading(RaykeeperError):
    """A write was withheld because our lease may already be someone else's."""


_KINDS: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: BadRequest,
    406: BadRequest,
    409: Conflict,
    410: Expired,
    413: Invalid,
    415: BadRequest,
    422: Invalid,
    429: TooManyRequests,
}
_KINDS_BY_REASON: dict[tuple[int, str], type[ApiError]] = {
    (409, "AlreadyExists"): AlreadyExists,
    (400, "Expired"): Expired,
    (500, "AlreadyExists"): AlreadyExists,  # an aggregated server's wrapped answer keeps the reason, not the code
    (500, "NotFound"): NotFound,
}


_WEBHOOK_FAILED = "Internal error occurred: failed calling webhook"


def api_error(
    request: str,
    status: int,
    reason: str,
    message: str,
    *,
    retry_after: float | None = None,
    service: str = "kubernetes API",
) -> ApiError | Unavailable:
    """The error that a refusal is raised as: `Unavailable` where the server is to blame, else one of those above."""
    kind = _KINDS_BY_REASON.get((status, reason)) or _KINDS.get(status)
    if kind is None and status >= 500:
        # Admission comes before the write: a webhook that cannot be asked has let nothing pass.
        failure = NotDone if message.startswith(_WEBHOOK_FAILED) else Unavailable
        return failure(service, f"{request}: {status} {reason}: {message}", retry_after=retry_after)
    return (kind or ApiError)(request, status, reason, message, retry_after)
