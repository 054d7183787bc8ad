"""Access keys from environment variables, for the backends that are given keys. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from raykeeper.errors import Misconfigured
from raykeeper.storage.backends.backend import Environment


@dataclass(frozen=True)
class KeyVariables:
    """The variables of one vendor: a key's id, the key, and a token for temporary keys."""

    key_id: str
    secret: str
    token: str

    def any_set(self, environment: Environment) -> bool:
        return any(environment.get(name) for name in (self.key_id, self.secret, self.token))

    def read(self, environment: Environment, options: tuple[str, str, str]) -> dict[str, str]:
        """The keys under opendal's names; stops by name when only half of the pair was given."""
        if bool(environment.get(self.key_id)) != bool(environment.get(self.secret)):
            absent = self.secret if environment.get(self.key_id) else self.key_id
            raise Misconfigured(absent, "", f"set both {self.key_id} and {self.secret}, or neither")
        names = (self.key_id, self.secret, self.token)
        pairs = zip(options, names, strict=True)
        return {option: environment[name] for option, name in pairs if environment.get(name)}
