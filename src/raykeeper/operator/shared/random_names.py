"""Names that nobody else has, made as Kubernetes makes them."""

from __future__ import annotations

import random

from raykeeper.api.names import SAFE_ALPHABET


def random_end() -> str:
    """Five characters, as in every name that Kubernetes generates."""
    return "".join(random.choices(SAFE_ALPHABET, k=5))  # noqa: S311 - a name, not a secret
