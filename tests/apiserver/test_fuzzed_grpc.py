"""Random bytes and random messages to every call over gRPC: each answer is one that a caller understands.

A failure has a reason in its text: what Kubernetes refused, what cannot be translated, that bytes are no message.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import grpc
import psutil
import pytest
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given, settings
from hypothesis import strategies as st

from bed.control_plane import ControlPlane
from bed.daemons import LOOPBACK
from bed.fixtures import make_namespace, remove_namespace
from raykeeper.apiserver.services.table import SERVED
from support.api_processes import ApiProcess, api_server_on
from support.auth_stage import STANDING, make_standing
from support.random_messages import messages, texts

NAMESPACE = f"fuzz-grpc-{uuid.uuid4().hex[:6]}"
METHODS = [method for service in SERVED for method in service.methods]
MIB = 1 << 20
MOST_GROWTH = 48 * MIB
"""Of memory, by thousands of different messages."""
CALL_SECONDS = 60.0
CODE = grpc.StatusCode
EXPECTED = {CODE.OK, CODE.INVALID_ARGUMENT, CODE.NOT_FOUND, CODE.ALREADY_EXISTS, CODE.FAILED_PRECONDITION}
EXPECTED |= {CODE.UNKNOWN, CODE.INTERNAL, CODE.UNAVAILABLE}
"""The last one of a head that is not there."""
REASONS = ("InternalServerError: ", "grpc: error unmarshalling request: ")
"""With which the text of an internal error tells its reason, in KubeRay's words."""


def mostly(usual: str, *others: str) -> st.SearchStrategy[str]:
    return st.sampled_from([usual] * (4 * len(others) + 4) + list(others))


KNOWN = {
    "namespace": mostly(NAMESPACE, "no-such-namespace", "a/b"),
    "name": st.from_regex(r"[a-z]{8}", fullmatch=True) | mostly(STANDING, "A_b", "..", "a/b") | texts,
    "clustername": mostly(STANDING, "missing", "a/b") | texts,
    "compute_template": mostly(STANDING, "missing"),
    "serve_config_V2": mostly("applications: []", "[", "applications: 5"),
    "user": mostly("fuzz", "a b"),
    **dict.fromkeys(("cluster", "job", "service", "cluster_spec", "head_group_spec", "ray_start_params"), texts),
    **dict.fromkeys(("jobsubmission", "entrypoint", "submissionid", "cpu", "memory"), texts),
}
"""Fields without which a call ends before anything is done."""


@dataclass(frozen=True)
class Scene:
    """A server, and a connection to it."""

    plane: ControlPlane
    server: ApiProcess
    channel: Any

    def check(self, method: Any, body: bytes) -> None:
        """The answer to a call is a message, or a failure that says why."""
        path = f"/{method.containing_service.full_name}/{method.name}"
        try:
            answer = self.channel.unary_unary(path)(body, timeout=CALL_SECONDS)
        except grpc.RpcError as failure:
            code, text = failure.code(), failure.details() or ""
            assert code in EXPECTED, f"{code}: {text}"
            assert text, f"{code} without a reason"
            assert code is not CODE.INTERNAL or any(reason in text for reason in REASONS), text
            assert "Unexpected <class" not in text, "grpc's own word for an exception that nobody caught"
            return
        GetMessageClass(method.output_type).FromString(answer)

    @property
    def memory(self) -> int:
        return int(psutil.Process(self.server.process.pid).memory_info().rss)


@pytest.fixture(scope="module")
def scene(ray_crds: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    make_namespace(ray_crds, NAMESPACE)
    with (
        api_server_on(ray_crds, tmp_path_factory.mktemp("apiserver"), "--auth=none") as server,
        grpc.insecure_channel(f"{LOOPBACK}:{server.ports.grpc}") as channel,
    ):
        yield Scene(ray_crds, server, channel)
    remove_namespace(ray_crds, NAMESPACE)


def name_of(method: Any) -> str:
    return f"{method.containing_service.name}.{method.name}"


def changed(message: Message, noise: bytes, place: int) -> bytes:
    """The bytes of a message with others in their midst."""
    body = message.SerializeToString()
    place = place % (len(body) + 1)
    return body[:place] + noise + body[place:]


def check_method(scene: Scene, method: Any, examples: int) -> None:
    kind = GetMessageClass(method.input_type)

    @settings(max_examples=examples)
    @given(messages(kind, KNOWN))
    def any_message(message: Message) -> None:
        scene.check(method, message.SerializeToString())

    @settings(max_examples=examples)
    @given(messages(kind, KNOWN), st.binary(max_size=64), st.integers(0, 1 << 16))
    def nearly_a_message(message: Message, noise: bytes, place: int) -> None:
        scene.check(method, changed(message, noise, place))

    @settings(max_examples=examples)
    @given(st.binary(max_size=4096))
    def any_bytes(body: bytes) -> None:
        scene.check(method, body)

    make_standing(scene.plane, NAMESPACE)
    any_message()
    nearly_a_message()
    any_bytes()
    assert "by a bug" not in scene.server.output
    assert "Traceback" not in scene.server.output


def test_all_calls_are_asked() -> None:
    assert len(METHODS) == 27


@pytest.mark.parametrize("method", METHODS, ids=name_of)
def test_whatever_is_sent_the_answer_says_why(method: Any, scene: Scene) -> None:
    check_method(scene, method, 40)


@pytest.mark.soak
@pytest.mark.parametrize("method", METHODS, ids=name_of)
def test_whatever_is_sent_for_long_the_answer_says_why(method: Any, scene: Scene) -> None:
    check_method(scene, method, 500)


def test_messages_of_every_kind_leave_nothing_in_memory(scene: Scene) -> None:
    """Once all calls were made, the same ones again need no more."""
    bodies: list[tuple[Any, bytes]] = []

    @settings(max_examples=100)
    @given(st.data())
    def collect(data: st.DataObject) -> None:
        method = data.draw(st.sampled_from(METHODS))
        bodies.append((method, data.draw(messages(GetMessageClass(method.input_type), KNOWN)).SerializeToString()))

    collect()
    make_standing(scene.plane, NAMESPACE)
    for method, body in bodies:
        scene.check(method, body)
    before = scene.memory
    for _ in range(10):
        for method, body in bodies:
            scene.check(method, body)
    assert scene.memory - before < MOST_GROWTH
    assert "raykeeper_apiserver_bugs_total 0.0" in scene.server.rest.raw("GET", "/metrics").decode()
