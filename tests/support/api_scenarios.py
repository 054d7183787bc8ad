"""Stories told to an API server over gRPC and over HTTP, and its answers in a form that can be compared.

A scenario is a YAML file with steps. `call` is a call of the API, made in the protocol of the run; `http` is a request
as it is sent, in runs over HTTP alone; `object`, `apply`, `patch`, `post` and `remove` go to Kubernetes itself.
`$namespace` is the namespace of the run, `$token` where the last list goes on, `$uid` that of the last object.
"""

from __future__ import annotations

import http.client
import json
import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, urlencode

import grpc
import yaml
from google.api import annotations_pb2
from google.protobuf import descriptor_pool, json_format
from google.protobuf.message_factory import GetMessageClass

from bed.control_plane import ControlPlane
from bed.daemons import LOOPBACK
from bed.kuberay_apiserver import ServerPorts
from bed.waiting import PATIENCE_SECONDS
from raykeeper.apiserver.protos import cluster_pb2, config_pb2, job_pb2, job_submission_pb2, serve_pb2

Protocol = Literal["grpc", "http"]
PROTOCOLS: tuple[Protocol, ...] = ("grpc", "http")
SCENARIOS = Path(__file__).parent.parent / "apiserver" / "scenarios"
ANSWERS = Path(__file__).parent.parent / "apiserver" / "kuberay_answers"
KEPT_HEADERS = ("Content-Type", "Location", "Vary", "Grpc-Metadata-Content-Type", "Retry-After")
KEPT_HEADER_PREFIX = "Access-Control-"
CALL_SECONDS = 90.0
ONLY_HTTP = ("http", "v2")

PROTO_FILES = (cluster_pb2, config_pb2, job_pb2, job_submission_pb2, serve_pb2)
"""Loaded, so that the pool below knows their services."""

_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?Z")
_GO_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)? \+0000 UTC")
_RAY_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2},[0-9]{3}")
_MILLISECONDS = re.compile(r"1[0-9]{12}")
_JOB = re.compile(r"[0-9a-f]{8}")
_SUBMISSION = re.compile(r"raysubmit_[A-Za-z0-9]{16}")
_NO_TIMES = ("1969-12-31T23:59:59Z", "0001-01-01T00:00:00Z")
_OWN_METADATA = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields")


def cases() -> list[tuple[str, Protocol]]:
    """Every scenario in every protocol; those about HTTP itself in that alone."""
    names = sorted(file.stem for file in SCENARIOS.glob("*.yaml"))
    return [(name, protocol) for name in names for protocol in PROTOCOLS if name not in ONLY_HTTP or protocol == "http"]


@dataclass
class Run:
    """One server, one protocol, one namespace."""

    plane: ControlPlane
    ports: ServerPorts
    protocol: Protocol
    namespace: str
    headers: dict[str, str] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    """What further names with a dollar stand for."""
    token: str = ""
    uid: str = ""
    attempts: int = 1
    """How often a request over HTTP may end without a whole answer: KubeRay's V2 now and then cuts off a refusal."""

    def tell(self, scenario: str, folder: Path = SCENARIOS) -> dict[str, Any]:
        """The answers to all steps by their names."""
        steps: list[dict[str, Any]] = yaml.safe_load((folder / f"{scenario}.yaml").read_text())
        answers: dict[str, Any] = {}
        for step in steps:
            answer = self._step(self._filled(step))
            if answer is not None:
                assert step["step"] not in answers, f"two steps are called {step['step']!r}"
                answers[step["step"]] = self._comparable(answer)
        return answers

    def _step(self, step: dict[str, Any]) -> Any:
        if "call" in step:
            return self._answered(step)
        if "http" in step:
            return self._sent(step) if self.protocol == "http" else None
        if "object" in step:
            found = self.plane.admin.get(step["object"])
            self.uid = found["metadata"]["uid"]
            return comparable_object(found)
        self._prepare(step)
        return None

    def _answered(self, step: dict[str, Any]) -> Any:
        """The answer to a call; with `until`, the first that has this word in it."""
        answer = self._called(step["call"], step.get("request") or {})
        deadline = time.monotonic() + PATIENCE_SECONDS
        while step.get("until", "") not in json.dumps(answer):
            assert time.monotonic() < deadline, f"{step['step']}: {answer}"
            time.sleep(0.5)
            answer = self._called(step["call"], step["request"])
        if step.get("own_jobs"):
            found = answer.get("answer") or answer["body"]
            jobs = [job for job in found["submissions"] if job.get("submissionId", "").startswith(self.namespace)]
            found["submissions"] = sorted(jobs, key=lambda job: str(job["submissionId"]))
        return self._own_rows(answer) if step.get("own_rows") else answer

    def _own_rows(self, answer: Any) -> Any:
        """A list of all namespaces without what other tests made."""
        found = answer.get("answer") or answer.get("body") or {}
        for name, rows in found.items():
            if isinstance(rows, list):
                found[name] = [row for row in rows if row["namespace"] == self.namespace]
        return answer

    def _prepare(self, step: dict[str, Any]) -> None:
        """Do to Kubernetes what others would."""
        admin = self.plane.admin
        if "apply" in step:
            admin.apply(step["apply"], step["body"])
        elif "patch" in step:
            admin.patch(step["patch"], step["body"])
        elif "post" in step:
            admin.post(step["post"], step["body"])
        elif "remove" in step:
            admin.delete(step["remove"])
        else:
            raise AssertionError(f"a step without a deed: {step}")

    def _called(self, name: str, request: dict[str, Any]) -> Any:
        return self._called_by_grpc(name, request) if self.protocol == "grpc" else self._called_by_http(name, request)

    def _called_by_grpc(self, name: str, request: dict[str, Any]) -> Any:
        method = method_named(name)
        message = json_format.ParseDict(request, GetMessageClass(method.input_type)())
        answer_class = GetMessageClass(method.output_type)
        options = [("grpc.max_receive_message_length", -1)]
        with grpc.insecure_channel(f"{LOOPBACK}:{self.ports.grpc}", options=options) as channel:
            call: Any = channel.unary_unary(
                f"/{method.containing_service.full_name}/{method.name}",
                request_serializer=lambda it: it.SerializeToString(),
                response_deserializer=answer_class.FromString,
            )
            metadata = [(name.lower(), value) for name, value in self.headers.items()]
            try:
                answer = call(message, timeout=CALL_SECONDS, metadata=metadata)
            except grpc.RpcError as error:
                return {"code": error.code().name, "message": error.details()}
        found = json_format.MessageToDict(answer, use_integers_for_enums=True)
        self._remember(found)
        return {"answer": found}

    def _called_by_http(self, name: str, request: dict[str, Any]) -> Any:
        verb, path, body = as_http(name, request)
        answer = self._sent({"http": f"{verb} {path}", "body": body})
        del answer["headers"]
        return answer

    def _sent(self, step: dict[str, Any]) -> dict[str, Any]:
        verb, path = step["http"].split(" ", 1)
        body = step.get("body")
        data = body if isinstance(body, str) or body is None else json.dumps(body)
        for attempt in range(self.attempts):
            try:
                response, content = self._exchanged(verb, path, data, step.get("headers") or {})
                break
            except http.client.HTTPException:
                if attempt == self.attempts - 1:
                    raise
        found: Any = content.decode()
        if response.headers.get("Content-Type") == "application/json" and found:
            found = json.loads(found)
            self._remember(found)
            found = _comparable_kubernetes(found)
        return {"status": response.status, "body": found, "headers": _kept(response)}

    def _exchanged(
        self, verb: str, path: str, data: str | None, headers: dict[str, str]
    ) -> tuple[http.client.HTTPResponse, bytes]:
        connection = http.client.HTTPConnection(LOOPBACK, self.ports.http, timeout=CALL_SECONDS)
        try:
            connection.request(verb, path, None if data is None else data.encode(), {**self.headers, **headers})
            response = connection.getresponse()
            return response, response.read()
        finally:
            connection.close()

    def _remember(self, answer: Any) -> None:
        if isinstance(answer, dict):
            self.token = answer.get("continue") or answer.get("nextPageToken") or ""

    def _filled(self, value: Any) -> Any:
        if isinstance(value, str) and value.startswith("$") and value[1:] in self.values:
            return self.values[value[1:]]
        if isinstance(value, str):
            value = value.replace("$$", "\0").replace("$namespace", self.namespace)
            return value.replace("$token", self.token).replace("$uid", self.uid).replace("\0", "$")
        if isinstance(value, dict):
            return {self._filled(name): self._filled(item) for name, item in value.items()}
        return [self._filled(item) for item in value] if isinstance(value, list) else value

    def _comparable(self, value: Any) -> Any:
        """Without what is another in every run."""
        if isinstance(value, dict):
            named = {name: self._comparable(item) for name, item in value.items()}
            return {
                self._comparable(name): "TOKEN" if name in ("continue", "nextPageToken") else item
                for name, item in named.items()
            }
        if isinstance(value, list):
            return [self._comparable(item) for item in value]
        if not isinstance(value, str) or value in _NO_TIMES:
            return value
        # Go's texts about JSON have one kind of space or the other, by the build.
        value = value.replace(self.namespace, "NAMESPACE").replace("\xa0", " ")
        if self.token:
            value = value.replace(self.token, "TOKEN")
        if _MILLISECONDS.fullmatch(value):
            return "TIME"
        if _JOB.fullmatch(value):
            return "JOB"
        if "job_manager.py" in value:  # lines of a job's log come in no order
            value = "\n".join(sorted(_RAY_TIME.sub("TIME", value).splitlines()))
        value = _SUBMISSION.sub("SUBMISSION", value)
        return _GO_TIME.sub("TIME", _TIME.sub("TIME", value))


def method_named(name: str) -> Any:
    return descriptor_pool.Default().FindMethodByName(name)


def as_http(name: str, request: dict[str, Any]) -> tuple[str, str, Any]:
    """The request line and body that a call stands for, by the options in the protobuf files."""
    rule = method_named(name).GetOptions().Extensions[annotations_pb2.http]
    verb = str(rule.WhichOneof("pattern"))
    rest, path = dict(request), getattr(rule, verb)
    for variable in re.findall(r"{(\w+)}", path):
        path = path.replace(f"{{{variable}}}", quote(str(rest.pop(variable, "")), safe=""))
    body = rest.pop(_json_name(rule.body), rest.pop(rule.body, {})) if rule.body else None
    query = urlencode(rest) if not rule.body else ""
    return verb.upper(), f"{path}?{query}" if query else path, body


def _json_name(field_name: str) -> str:
    first, *words = field_name.split("_")
    return first + "".join(word.capitalize() for word in words)


def _kept(response: http.client.HTTPResponse) -> dict[str, str]:
    return {
        name: value
        for name, value in response.headers.items()
        if name in KEPT_HEADERS or name.startswith(KEPT_HEADER_PREFIX)
    }


def comparable_object(found: dict[str, Any]) -> dict[str, Any]:
    """A Kubernetes object without what every one has of its own, and variables in one order: KubeRay's is random."""
    metadata = {name: value for name, value in found["metadata"].items() if name not in _OWN_METADATA}
    return dict(_sorted_variables({**found, "metadata": metadata}))


def _comparable_kubernetes(found: Any) -> Any:
    """What Kubernetes answered, without what is another in every run; anything else is left alone."""
    if not isinstance(found, dict) or "kind" not in found:
        return found
    metadata = {name: value for name, value in (found.get("metadata") or {}).items() if name not in _OWN_METADATA}
    found = {**found, "metadata": metadata}
    if "uid" in (found.get("details") or {}):
        found["details"] = {**found["details"], "uid": "UID"}
    if "items" in found:
        found["items"] = [_comparable_kubernetes({"kind": "", **item}) for item in found["items"]]
    if "resources" in found:  # in the order in which the API server came to know them
        found["resources"] = sorted(found["resources"], key=lambda one: one["name"])
    return found


def _sorted_variables(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: sorted(item, key=lambda one: one.get("name") or json.dumps(one))
            if name in ("env", "envFrom", "items") and isinstance(item, list) and all(map(_is_object, item))
            else _sorted_variables(item)
            for name, item in value.items()
        }
    return [_sorted_variables(item) for item in value] if isinstance(value, list) else value


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)
