"""The three kinds of error every layer agrees on (anything else is our bug and rises to the loop's top)."""

from __future__ import annotations


class RaykeeperError(Exception):
    """Base of every error whose text is meant for a person: one sentence, lower case, naming the object."""

    exit_code = 1
    """Of a command that ends by it."""


class Misconfigured(RaykeeperError):
    """A setting cannot be used. The program stops at start with this one line."""

    exit_code = 2

    def __init__(self, setting: str, value: object, cure: str) -> None:
        super().__init__(f"{setting}={value!r} cannot be used: {cure}")
        self.setting = setting
        self.value = value
        self.cure = cure


class InvalidSpec(RaykeeperError):
    """The user must act: a condition and a Warning event; no retry until the spec changes."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class Unavailable(RaykeeperError):
    """The world must act: retried with back-off, no sooner than `retry_after` seconds."""

    def __init__(self, service: str, cause: str, *, retry_after: float | None = None) -> None:
        super().__init__(f"{service}: {cause}")
        self.service = service
        self.cause = cause
        self.retry_after = retry_after
