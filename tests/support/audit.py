"""The API server's own record of who asked for what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import yaml

from support.operator_rights import Right


class _User(msgspec.Struct):
    username: str


class _Target(msgspec.Struct, rename="camel"):
    resource: str = ""
    subresource: str = ""
    api_group: str = ""


class _Outcome(msgspec.Struct):
    code: int = 0


class _Entry(msgspec.Struct, rename="camel"):
    verb: str
    user: _User
    object_ref: _Target | None = None
    impersonated_user: _User | None = None
    response_status: _Outcome = msgspec.field(default_factory=_Outcome)


@dataclass(frozen=True)
class AuditLog:
    """Requests of one user, kept by an API server that was started with the `flags` of this log or a neighbour's."""

    folder: Path
    user: str

    def flags(self, *neighbours: str) -> tuple[str, ...]:
        """Command line arguments for kube-apiserver; writes the policy they point to. Neighbours are other users."""
        policy = {
            "apiVersion": "audit.k8s.io/v1",
            "kind": "Policy",
            # A watch is written down when it starts, not when it ends.
            "omitStages": ["RequestReceived"],
            "rules": [{"level": "Metadata", "users": [self.user, *neighbours]}, {"level": "None"}],
        }
        file = self.folder / "audit-policy.yaml"
        file.write_text(yaml.safe_dump(policy))
        return (f"--audit-policy-file={file}", f"--audit-log-path={self._file}", "--audit-log-mode=blocking")

    def used(self) -> set[Right]:
        """What the user did so far."""
        return {_right(entry) for entry in self._entries() if entry.response_status.code != 403 and entry.object_ref}

    def refused(self) -> set[Right]:
        """What the user was not allowed to do."""
        return {_right(entry) for entry in self._entries() if entry.response_status.code == 403 and entry.object_ref}

    def _entries(self) -> Iterator[_Entry]:
        for line in self._file.read_bytes().splitlines():
            entry = msgspec.json.decode(line, type=_Entry)
            # In somebody else's name, with their rights.
            if entry.user.username == self.user and entry.impersonated_user is None:
                yield entry

    @property
    def _file(self) -> Path:
        return self.folder / "audit.log"


def _right(entry: _Entry) -> Right:
    target = entry.object_ref or _Target()
    kind = f"{target.resource}/{target.subresource}" if target.subresource else target.resource
    return Right(target.api_group, kind, entry.verb)
