"""Events in the shapes that Ray 2.60 sends, made up: unique ids, real field names, real sizes."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Sequence
from typing import Any

SESSION = "session_2026-11-15_19-11-48_425996_9"
NODE_HEX = "a5" * 28


def an_id(dice: random.Random, size: int) -> str:
    """A random id as events have it."""
    return base64.b64encode(dice.randbytes(size)).decode()


def node_id(hex_id: str = NODE_HEX) -> str:
    return base64.b64encode(bytes.fromhex(hex_id)).decode()


class EventMaker:
    """Makes unique events; the same seed makes the same ones."""

    def __init__(self, seed: int = 0, session: str = SESSION, node: str = NODE_HEX) -> None:
        self._dice = random.Random(seed)
        self._session = session
        self._node = node_id(node)
        self._workers = [an_id(self._dice, 28) for _ in range(8)]
        self._driver_task = an_id(self._dice, 24)
        self._task = ""
        self._count = 0

    def event(self, **changes: object) -> dict[str, Any]:
        """One event: a task's definition, its lifecycle, its profile, then the next task."""
        make = (self._definition, self._lifecycle, self._profile)[self._count % 3]
        if not self._count % 3:
            self._task = an_id(self._dice, 24)
        self._count += 1
        return {**self._envelope(), **make(), **changes}

    def events(self, count: int, **changes: object) -> list[dict[str, Any]]:
        return [self.event(**changes) for _ in range(count)]

    def _envelope(self) -> dict[str, Any]:
        return {
            "eventId": an_id(self._dice, 28),
            "sourceType": "CORE_WORKER",
            "timestamp": f"2026-11-15T19:{self._dice.randrange(60):02d}:35.{self._dice.randrange(10**9):09d}Z",
            "severity": "INFO",
            "sessionName": self._session,
            "nodeId": self._node,
            "message": "",
        }

    def _definition(self) -> dict[str, Any]:
        function = {"moduleName": "__main__", "className": "", "functionName": "step", "functionHash": "7f" * 14}
        definition = {
            "taskId": self._task,
            "taskAttempt": 0,
            "taskType": "NORMAL_TASK",
            "taskName": f"step-{self._dice.randrange(100)}",
            "taskFunc": {"pythonFunctionDescriptor": function},
            "jobId": "AgAAAA==",
            "parentTaskId": self._driver_task,
            "placementGroupId": "////////////////////////",
            "requiredResources": {"CPU": 1.0},
            "language": "PYTHON",
            "serializedRuntimeEnv": "{}",
            "refIds": {},
            "labelSelector": {},
            "isDetachedActor": False,
        }
        return {"eventType": "TASK_DEFINITION_EVENT", "taskDefinitionEvent": definition}

    def _lifecycle(self) -> dict[str, Any]:
        log_file = f"/tmp/ray/{self._session}/logs/worker-{'54' * 28}-02000000-{self._dice.randrange(9999)}"
        start = self._dice.randrange(10**6)
        lifecycle = {
            "taskId": self._task,
            "taskAttempt": 0,
            "jobId": "AgAAAA==",
            "nodeId": self._node,
            "workerId": self._dice.choice(self._workers),
            "workerPid": self._dice.randrange(99999),
            "stateTransitions": [
                {"state": state, "timestamp": f"2026-11-15T19:12:35.{self._dice.randrange(10**9):09d}Z"}
                for state in ("RUNNING", "FINISHED")
            ],
            "taskLogInfo": {
                "stdoutFile": f"{log_file}.out",
                "stdoutStart": str(start),
                "stdoutEnd": str(start + 55),
            },
        }
        return {"eventType": "TASK_LIFECYCLE_EVENT", "taskLifecycleEvent": lifecycle}

    def _profile(self) -> dict[str, Any]:
        start = 1794770614361277245 + self._dice.randrange(10**12)
        spans = [
            {"eventName": name, "startTime": str(start), "endTime": str(start + 10**6), "extraData": "{}"}
            for name in ("task:execute", "task:store_outputs")
        ]
        profile = {
            "componentType": "worker",
            "componentId": self._dice.choice(self._workers),
            "nodeIpAddress": "10.77.0.2",
            "events": spans,
        }
        payload = {"taskId": self._task, "attemptNumber": 0, "jobId": "AgAAAA==", "profileEvents": profile}
        return {"eventType": "TASK_PROFILE_EVENT", "taskProfileEvents": payload}


def line_of(event: object) -> bytes:
    """An event as the body has it, byte for byte."""
    return json.dumps(event).encode()


def body_of(events: Sequence[object]) -> bytes:
    """A batch as Ray's agent writes it: Python's json, with a space after each comma and colon."""
    return b"[" + b", ".join(map(line_of, events)) + b"]"
