"""Messages as JSON: as the reference writes and reads it, but for what KubeRay's gateway does otherwise."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.protobuf import json_format
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from raykeeper.apiserver.protos import cluster_pb2, config_pb2, job_pb2, job_submission_pb2, serve_pb2
from raykeeper.apiserver.rest.protojson import DEEPEST, InvalidJson, parse_into, to_json
from support.random_messages import messages, texts

KINDS: list[Any] = [
    cluster_pb2.Cluster,
    cluster_pb2.ListClustersResponse,
    config_pb2.ComputeTemplate,
    job_pb2.RayJob,
    job_submission_pb2.JobSubmissionInfo,
    serve_pb2.RayService,
]

any_message = st.sampled_from(KINDS).flatmap(messages)


@given(any_message)
def test_whole_messages_are_written_as_the_reference_writes_them(message: Message) -> None:
    reference = json_format.MessageToDict(message, use_integers_for_enums=True)
    assert json.loads(to_json(message, with_additions=True)) == reference


@given(any_message)
def test_what_was_written_is_read_back(message: Message) -> None:
    again = type(message)()
    parse_into(to_json(message, with_additions=True), again)
    assert again == message


@given(any_message)
def test_both_spellings_and_names_of_enums_are_read(message: Message) -> None:
    spelled = json_format.MessageToJson(message, preserving_proto_field_name=True)
    again = type(message)()
    parse_into(spelled.encode(), again)
    assert again == message


def test_fields_that_kuberay_does_not_have_are_left_out_at_every_depth() -> None:
    cluster = cluster_pb2.Cluster(name="a", labels={"b": "c"})
    cluster.cluster_spec.head_group_spec.node_selector["x"] = "y"
    cluster.cluster_spec.head_group_spec.image = "i"
    cluster.cluster_spec.worker_group_spec.add(group_name="g", suspend=True)
    assert json.loads(to_json(cluster)) == {
        "name": "a",
        "clusterSpec": {"headGroupSpec": {"image": "i"}, "workerGroupSpec": [{"groupName": "g"}]},
    }


def test_numbers_look_as_in_kuberays_answers() -> None:
    job = job_pb2.RayJob(entrypointNumCpus=0.1, entrypointNumGpus=2.0)
    assert to_json(job) == b'{"entrypointNumCpus":0.1,"entrypointNumGpus":2}'
    assert json.loads(to_json(job_pb2.RayJob(entrypointNumCpus=-0.0))) == {"entrypointNumCpus": -0.0}
    info = job_submission_pb2.JobSubmissionInfo(start_time=1700000000000)
    assert to_json(info) == b'{"startTime":"1700000000000"}'
    assert to_json(config_pb2.ComputeTemplate()) == b"{}"


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"\xff\xfe", "UTF-8"),
        (b'"text"', 'unexpected token "text"'),
        (b"5", "unexpected token 5"),
        (b'{"name": ["a"]}', r"invalid value for string field name: \["),
        (b'{"name": {"a": 1}}', "invalid value for string field name: {"),
        (b'{"cpu": true}', "invalid value for uint32 field cpu: true"),
        (b'{"cpu": "0x10"}', "invalid value for uint32 field cpu"),
        (b'{"cpu": NaN}', "invalid value NaN"),
        (b'{"cpu": 1e400}', "invalid value for uint32 field cpu"),
        (b'{"name": "\\ud800"}', "invalid value for string field name"),
        (b'{"affinity": []}', "invalid google.protobuf.Struct value"),
        (b'{"tolerations": [5]}', "unexpected token 5"),
        (b'{"extendedResources": {"a": "b"}}', "invalid value for uint32 field value"),
        (b'{"name": "a"} {"name": "b"}', None),
        (b'{"cpu": ' + b"9" * 5000 + b"}", "digits|invalid value"),
        (b'{"a":' * 50_000, "depth|Expecting"),
        (b"[" * 50_000, "depth|Expecting"),
        (b'{"affinity": ' + b'{"a":' * 3000 + b"1" + b"}" * 3001, "depth|Struct"),
    ],
)
def test_what_is_no_message_is_refused_by_name(body: bytes, problem: str | None) -> None:
    template = config_pb2.ComputeTemplate()
    if problem is None:
        parse_into(body, template)
        assert template.name == "a"
    else:
        with pytest.raises(InvalidJson, match=problem):
            parse_into(body, template)


def test_a_long_value_is_not_repeated_in_full() -> None:
    with pytest.raises(InvalidJson) as refusal:
        parse_into(b'{"cpu": "' + b"x" * 100_000 + b'"}', config_pb2.ComputeTemplate())
    assert len(str(refusal.value)) < 300


def test_free_json_may_be_deep_but_not_endless() -> None:
    inner: Any = "x"
    for _ in range(DEEPEST // 4):
        inner = {"a": inner}
    template = config_pb2.ComputeTemplate()
    parse_into(json.dumps({"affinity": inner}).encode(), template)
    assert template.HasField("affinity")


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    try:
        parse_into(body, cluster_pb2.Cluster())
    except InvalidJson:
        return


_json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
_fields = sorted({field.json_name for kind in KINDS for field in kind.DESCRIPTOR.fields})


@given(st.sampled_from(KINDS), st.dictionaries(st.sampled_from(_fields), _json_values, max_size=4))
def test_any_value_for_any_field_is_read_or_refused(kind: Any, fields: dict[str, Any]) -> None:
    message = kind()
    try:
        parse_into(json.dumps(fields).encode(), message)
    except InvalidJson:
        return
    to_json(message, with_additions=True)
