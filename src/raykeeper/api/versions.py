"""Ray versions as KubeRay reads them: Kubernetes' "generic" syntax, which ignores what follows the numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

# Leading blanks and a "v" are allowed; "2.53.0rc1" and "2.53.0.dev0" both mean 2.53.0.
_GENERIC: Final = re.compile(r"[\t\n\f\r ]*v?([0-9]+(?:\.[0-9]+)*).*")
_MIN_COMPONENTS: Final = 2  # "2" alone is no version


@dataclass(frozen=True, order=True)
class Version:
    """Numbers of a version without trailing zeros, so that 2.52 equals 2.52.0."""

    components: tuple[int, ...]

    def __str__(self) -> str:
        padded = self.components + (0,) * (3 - len(self.components))
        return ".".join(str(component) for component in padded)


def version(*components: int) -> Version:
    """The version with these numbers."""
    significant = list(components)
    while significant and significant[-1] == 0:
        significant.pop()
    return Version(tuple(significant))


def parse_version(text: str) -> Version | None:
    """The version that the text starts with; None for words such as "nightly", and for a single number."""
    match = _GENERIC.fullmatch(text)
    if match is None:
        return None
    components = match[1].split(".")
    if len(components) < _MIN_COMPONENTS or (components[0].startswith("0") and components[0] != "0"):
        return None
    return version(*map(int, components))


TOKEN_AUTH: Final = version(2, 52)
HTTP_PROBES: Final = version(2, 53)
KUBERNETES_TOKEN_AUTH: Final = version(2, 55)
GROUP_PRIORITY: Final = version(2, 56)
"""The first Ray that has the feature."""
