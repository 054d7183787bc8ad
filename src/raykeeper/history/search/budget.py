"""How long a search may go on before it answers with what it has."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from raykeeper.history.search.model import Hit


@dataclass
class Budget:
    """The hits found so far, and whether there is time and room for more."""

    limit: int
    seconds: float
    hits: list[Hit] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    @property
    def room(self) -> int:
        return self.limit - len(self.hits)

    @property
    def is_over(self) -> bool:
        return self.room <= 0 or not time.monotonic() - self.began < self.seconds  # so that no number is for ever
