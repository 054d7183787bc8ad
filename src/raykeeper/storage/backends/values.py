"""Settings of a store as they were given, each under its name there, so that an error can say which to mend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from raykeeper.errors import Misconfigured


@dataclass(frozen=True)
class Given:
    """One value and its name where it was given: a variable, a key of the file, or a part of the URL."""

    setting: str
    text: str

    def refuse(self, cure: str, *, shown: str | None = None) -> Misconfigured:
        """The error for a value that cannot be used; `shown` stands for a value that is secret."""
        return Misconfigured(self.setting, self.text if shown is None else shown, cure)


class Values:
    """Values by our own names of the fields. Absent and empty are the same, as they are for KubeRay."""

    def __init__(self, given: Mapping[str, Given], names: Mapping[str, str]) -> None:
        self._given = given
        self._names = names
        """How each field is called where a user would set it, for errors about one that is not given."""

    def get(self, field: str) -> Given | None:
        found = self._given.get(field)
        return found if found is not None and found.text else None

    def text(self, field: str, default: str = "") -> str:
        found = self.get(field)
        return default if found is None else found.text

    def required(self, field: str, cure: str) -> Given:
        """The value of a field that must be given; stops by the name it would have been given under."""
        found = self.get(field)
        if found is None:
            raise Misconfigured(self._names.get(field, field), "", cure)
        return found

    def flag(self, field: str) -> bool | None:
        """Whether a switch is on; None when it was not given."""
        found = self.get(field)
        if found is None:
            return None
        if found.text.lower() not in ("true", "false"):
            raise found.refuse("use true or false")
        return found.text.lower() == "true"
