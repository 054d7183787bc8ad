"""Batches of unique events in Ray's shapes, for load."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

EVENTS_PER_BATCH = 1000
_MAKER = Path(__file__).parent.parent / "tests" / "ray_event_batches.py"


def batches(count: int) -> Iterator[bytes]:
    """So many bodies of a thousand events each, all different."""
    events = _load()
    maker = events.EventMaker(1)
    for _ in range(count):
        yield events.body_of(maker.events(EVENTS_PER_BATCH))


def _load() -> ModuleType:
    """The maker of the tests, which are no package."""
    spec = importlib.util.spec_from_file_location(_MAKER.stem, _MAKER)
    if spec is None or spec.loader is None:
        raise ImportError(str(_MAKER))
    module = importlib.util.module_from_spec(spec)
    sys.modules[_MAKER.stem] = module
    spec.loader.exec_module(module)
    return module
