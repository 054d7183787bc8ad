"""What the head says about itself: its version, its Python, its distance from UTC. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import timedelta

import msgspec

from raykeeper.collector.poll.answers import UnreadableAnswer, read_answer
from raykeeper.collector.poll.endpoints import METADATA, TIMEZONE, VERSION

_MAX_CHARACTERS = 128
"""Of each fact; it goes into a record that every list of sessions reads."""
_OFFSET = re.compile(r"([+-])(\d\d):(\d\d)")


@dataclass(frozen=True)
class HeadFacts:
    """Of one session; what was not answered yet is empty."""

    ray_version: str = ""
    ray_commit: str = ""
    python_version: str = ""
    utc_offset: timedelta | None = None
    """Of the head's local time, in which Ray names its sessions."""


class _Version(msgspec.Struct):
    ray_version: str = ""
    ray_commit: str = ""
    session_name: str = ""


class _MetadataData(msgspec.Struct, rename="camel"):
    python_version: str = ""


class _Metadata(msgspec.Struct):
    data: _MetadataData


class _Timezone(msgspec.Struct):
    offset: str = ""


def parse_session_name(body: bytes) -> str:
    """The session by `/api/version`; empty where it does not say."""
    try:
        return read_answer(body, _Version).session_name
    except UnreadableAnswer:
        return ""


def with_answer(facts: HeadFacts, name: str, body: bytes) -> HeadFacts:
    """The facts with what one more answer says; an answer of another shape changes nothing."""
    try:
        return _with_answer(facts, name, body)
    except UnreadableAnswer:
        return facts


def _with_answer(facts: HeadFacts, name: str, body: bytes) -> HeadFacts:
    if name == VERSION:
        version = read_answer(body, _Version)
        return replace(facts, ray_version=_cut(version.ray_version), ray_commit=_cut(version.ray_commit))
    if name == METADATA:
        return replace(facts, python_version=_cut(read_answer(body, _Metadata).data.python_version))
    if name == TIMEZONE:
        return replace(facts, utc_offset=parse_utc_offset(read_answer(body, _Timezone).offset))
    return facts


def _cut(text: str) -> str:
    return text[:_MAX_CHARACTERS]


def parse_utc_offset(text: str) -> timedelta | None:
    """From Ray's `+05:30`; None for anything else."""
    if not (found := _OFFSET.fullmatch(text)):
        return None
    size = timedelta(hours=int(found[2]), minutes=int(found[3]))
    return -size if found[1] == "-" else size
