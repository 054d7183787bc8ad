"""Credentials of whoever asked us to do something, in the place of our own."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from raykeeper.kube.connect.credentials import Credentials, Identity


@dataclass(frozen=True)
class CallerToken:
    """A caller's own bearer token. Of ours, only the trust in the API server's certificate is used: with our client
    certificate beside it, the API server would take the caller for us."""

    own: Credentials
    token: str = field(repr=False)

    async def current(self) -> Identity:
        trust = (await self.own.current()).trust
        shown = {"Authorization": f"Bearer {self.token}"}
        return Identity(shown, trust, "the token", trust=trust, source="the request")

    async def renew(self, refused: Identity) -> Identity:
        return refused


@dataclass(frozen=True)
class Impersonation:
    """Our own credentials, and the name of whom we act for."""

    own: Credentials
    user: str
    groups: tuple[str, ...]

    async def current(self) -> Identity:
        return self._named(await self.own.current())

    async def renew(self, refused: Identity) -> Identity:
        before = await self.own.current()
        renewed = await self.own.renew(before)
        return refused if renewed is before else self._named(renewed)

    def _named(self, identity: Identity) -> Identity:
        groups = (("Impersonate-Group", group) for group in self.groups)
        return replace(identity, repeated=(("Impersonate-User", self.user), *groups))
