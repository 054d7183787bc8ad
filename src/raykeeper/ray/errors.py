"""What a Ray head may do instead of answering. What passes by itself is `Unavailable`."""

from __future__ import annotations

from raykeeper.errors import RaykeeperError, Unavailable


class RayRefused(RaykeeperError):
    """The head wants another credential. A token may be renewed or mounted late, so this is retried, but slowly."""

    def __init__(self, service: str, status: int) -> None:
        cure = "a token is missing" if status == 401 else "the token is not the cluster's"
        super().__init__(f"{service}: refused with {status}, {cure}")
        self.status = status


class OversizedAnswer(RaykeeperError):
    """The body is larger than the caller has memory for; nothing of it was kept."""

    def __init__(self, service: str, path: str, limit_bytes: int) -> None:
        super().__init__(f"{service}: the answer to {path} is larger than {limit_bytes} bytes")
        self.path = path


class NotAnswered(Unavailable):
    """A stream was asked for, and what came is an error of the head's own."""

    def __init__(self, service: str, path: str, status: int) -> None:
        super().__init__(service, f"{path} answered {status}")
        self.status = status


class HeadRefused(RaykeeperError):
    """The head answered and did not do what was asked for; asking again in the same words changes nothing."""

    def __init__(self, about: str, status: int, text: str) -> None:
        super().__init__(f"{about}: refused with {status}: {text}")
        self.status = status
        self.text = text


class SubmissionIdTaken(RaykeeperError):
    """Another job was submitted under this id before."""

    def __init__(self, submission_id: str) -> None:
        super().__init__(f"submission id {submission_id} is taken")
        self.submission_id = submission_id
