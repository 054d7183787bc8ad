"""Why a call failed, in the codes of gRPC and the words of KubeRay's API server.

KubeRay makes its texts by wrapping: what is meant for the caller, then each step that failed, then the cause. Clients
show and search these texts, so ours are made the same way.
"""

from __future__ import annotations

from enum import IntEnum

from raykeeper.errors import RaykeeperError, Unavailable
from raykeeper.kube.errors import ApiError, Forbidden, TooManyRequests, Unauthorized


class Code(IntEnum):
    """The codes of gRPC, under the names that its metrics have."""

    OK = 0
    Canceled = 1
    Unknown = 2
    InvalidArgument = 3
    DeadlineExceeded = 4
    NotFound = 5
    AlreadyExists = 6
    PermissionDenied = 7
    ResourceExhausted = 8
    FailedPrecondition = 9
    Aborted = 10
    OutOfRange = 11
    Unimplemented = 12
    Internal = 13
    Unavailable = 14
    DataLoss = 15
    Unauthenticated = 16


class Untranslatable(RaykeeperError):
    """A message that cannot become a Kubernetes object; the text is KubeRay's."""


class CallFailed(RaykeeperError):
    """A call that was refused or did not succeed."""

    def __init__(self, code: Code, cause: str, external: str = "") -> None:
        super().__init__(f"{external}: {cause}" if external else cause)
        self.code = code
        self.cause = cause
        """Without what is meant for the caller."""
        self._external = external

    def wrapped(self, step: str) -> CallFailed:
        """The same failure, seen from the step that it broke."""
        return CallFailed(self.code, f"{step}: {self.cause}", self._external)


def invalid_input(message: str) -> CallFailed:
    return CallFailed(Code.InvalidArgument, f"Invalid input error: {message}", message)


def untranslatable(cause: Untranslatable, message: str) -> CallFailed:
    return CallFailed(Code.InvalidArgument, f"InvalidInputError: {message}: {cause}", message)


def already_exists(message: str) -> CallFailed:
    return CallFailed(Code.AlreadyExists, f"Already exist error: {message}", message)


def not_found(cause: Exception, message: str) -> CallFailed:
    return CallFailed(Code.NotFound, f"NotFoundError: {message}: {cause_text(cause)}", message)


def internal(cause: Exception, message: str) -> CallFailed:
    """For what Kubernetes refused or broke in a step of ours: KubeRay's code, unless there is a better one."""
    code = _code_of(cause) or Code.Internal
    return CallFailed(code, f"InternalServerError: {message}: {cause_text(cause)}", "Internal Server Error")


def plain(cause: Exception) -> CallFailed:
    """For what KubeRay passes on without a code of its own."""
    if isinstance(cause, CallFailed):
        return cause
    return CallFailed(_code_of(cause) or Code.Unknown, cause_text(cause))


def cause_text(cause: Exception) -> str:
    """The API server's own sentence, without the request around it."""
    return cause.message if isinstance(cause, ApiError) else str(cause)


def _code_of(cause: Exception) -> Code | None:
    """The code of failures that say something about the caller or the world. KubeRay has 500 for them."""
    if isinstance(cause, Forbidden):
        return Code.PermissionDenied
    if isinstance(cause, Unauthorized):
        return Code.Unauthenticated
    if isinstance(cause, TooManyRequests):
        return Code.ResourceExhausted
    if isinstance(cause, Unavailable):
        return Code.Unavailable
    return None
