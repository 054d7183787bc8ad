"""Which pages of other sites may call the API server, as KubeRay's answers browsers that ask. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

METHODS: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
HEADERS: Final = frozenset({"accept", "content-type", "x-requested-with", "authorization"})
"""The last one is not among KubeRay's: pages could not log in."""
_PREFLIGHT_VARY: Final = "Origin, Access-Control-Request-Method, Access-Control-Request-Headers"


@dataclass(frozen=True)
class Cors:
    """The rule for one origin; `*` stands for any, also inside a name."""

    allowed: str

    def is_preflight(self, method: str, headers: Mapping[str, str]) -> bool:
        """Whether a browser asks what it may send, instead of sending it."""
        return bool(self.allowed) and method == "OPTIONS" and bool(headers.get("Access-Control-Request-Method"))

    def preflight_headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """The answer to such a question: without permission it says nothing else."""
        asked = headers.get("Access-Control-Request-Headers", "")
        names = {name.strip().lower() for name in asked.split(",") if name.strip()}
        method = headers.get("Access-Control-Request-Method", "").upper()
        if not self.allows(headers.get("Origin")) or method not in METHODS or not names <= HEADERS:
            return {"Vary": _PREFLIGHT_VARY}
        granted = {**self._origin_header(headers), "Access-Control-Allow-Methods": method, "Vary": _PREFLIGHT_VARY}
        return {**granted, **({"Access-Control-Allow-Headers": asked} if names else {})}

    def answer_headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """What every answer of the API carries."""
        if not self.allowed:
            return {}
        return {"Vary": "Origin", **(self._origin_header(headers) if self.allows(headers.get("Origin")) else {})}

    def allows(self, origin: str | None) -> bool:
        """Whether pages from there may call."""
        if not origin or not self.allowed:
            return False
        before, star, after = self.allowed.lower().partition("*")
        name = origin.lower()
        if not star:
            return name == before
        return len(name) >= len(before) + len(after) and name.startswith(before) and name.endswith(after)

    def _origin_header(self, headers: Mapping[str, str]) -> dict[str, str]:
        return {"Access-Control-Allow-Origin": "*" if self.allowed == "*" else headers.get("Origin", "")}
