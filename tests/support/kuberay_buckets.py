"""A bucket as KubeRay 1.7's collector writes it: markers, event files, whole logs and fetched answers."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from raykeeper.history.store.kuberay.keys import KubeRayPlace, to_stored_name
from raykeeper.layout.keys import SessionId
from raykeeper.storage.store import ObjectStore

EventForm = Literal["lines", "gzip", "array"]
SESSION_NAME = "session_2026-11-15_20-09-58_472817_9"
OPENED_NS = 1_794_773_400_000_000_000  # 2026-11-15T20:10:00Z

PLAIN = KubeRayPlace(SessionId("golden", "capture", SESSION_NAME))
OF_A_JOB = KubeRayPlace(SessionId("golden", "nightly-x7k2p", SESSION_NAME), "rayjob", "nightly")
OF_A_SERVICE = KubeRayPlace(SessionId("golden", "chat-raycluster-9wq4z", SESSION_NAME), "rayservice", "chat")
PLACES = (PLAIN, OF_A_JOB, OF_A_SERVICE)

_WITH_JOB = (
    "driverJobDefinitionEvent",
    "driverJobLifecycleEvent",
    "taskDefinitionEvent",
    "taskLifecycleEvent",
    "taskProfileEvents",
    "actorTaskDefinitionEvent",
    "actorDefinitionEvent",
)


@dataclass(frozen=True)
class KubeRayBucket:
    """One session in the making."""

    store: ObjectStore
    place: KubeRayPlace
    form: EventForm = "lines"

    async def put_marker(self) -> None:
        await self.store.put(self.place.marker_key, b"")

    async def put_events(
        self, node_id: str, events: Iterable[Mapping[str, Any]], *, opened_ns: int = OPENED_NS
    ) -> None:
        """One file for each job, and one for what belongs to none."""
        files: dict[str, list[Mapping[str, Any]]] = {}
        for event in events:
            files.setdefault(_folder(event), []).append(event)
        for number, (folder, some) in enumerate(sorted(files.items())):
            suffix = {"lines": ".jsonl", "gzip": ".jsonl.gz", "array": ""}[self.form]
            name = f"{node_id}-2026-11-15-20-{opened_ns + number}{suffix}"
            await self.store.put(f"{self.place.prefix}{node_id}/{folder}/{name}", to_event_file(some, self.form))

    async def put_logs(self, node_id: str, files: Mapping[str, bytes]) -> None:
        for path, data in files.items():
            await self.store.put(f"{self.place.prefix}{node_id}/logs/{path}", data)

    async def put_answer(self, path: str, body: Any) -> None:
        key = f"{self.place.prefix}fetched_endpoints/{to_stored_name(path)}"
        await self.store.put(key, json.dumps(body).encode())


def to_event_file(events: Iterable[Mapping[str, Any]], form: EventForm) -> bytes:
    """The bytes of one file, with keys in another order than Ray's, as Go leaves them."""
    texts = [json.dumps(event, sort_keys=True) for event in events]
    if form == "array":
        between = ",\n  "
        return f"[\n  {between.join(texts)}\n]\n".encode()
    lines = "".join(f"{text}\n" for text in texts).encode()
    return gzip.compress(lines, mtime=0) if form == "gzip" else lines


def _folder(event: Mapping[str, Any]) -> str:
    job = next((event[name]["jobId"] for name in _WITH_JOB if event.get(name, {}).get("jobId")), None)
    return f"job_events/{_hex(job)}" if job else "node_events"


def _hex(base64_id: str) -> str:
    return base64.b64decode(base64_id).hex()
