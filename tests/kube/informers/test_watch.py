"""The bytes of a watch become frames, whatever the chunks they come in."""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raykeeper.api.meta import Object, Resource
from raykeeper.errors import Unavailable
from raykeeper.kube.http.requests import Query
from raykeeper.kube.informers.watch import Added, Bookmark, Deleted, Failed, Frame, Lines, Modified, Selection, watch

PODS = Resource("", "v1", "pods", "Pod", Object)


def cut(data: bytes, cuts: list[int]) -> list[bytes]:
    """The data in chunks that end at the given positions."""
    edges = [0, *sorted(position % (len(data) + 1) for position in cuts), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges)]


@given(st.lists(st.binary(min_size=1).map(lambda line: line.replace(b"\n", b"."))), st.lists(st.integers(0)))
def test_lines_come_out_whole_and_in_order_wherever_the_chunks_end(lines: list[bytes], cuts: list[int]) -> None:
    splitter = Lines()
    out = [line for chunk in cut(b"".join(line + b"\n" for line in lines), cuts) for line in splitter.feed(chunk)]
    assert out == lines


def test_an_unfinished_line_is_not_given_out() -> None:
    assert Lines().feed(b'{"type":"ADDED","object":{') == []


def test_a_line_without_end_is_refused_before_it_fills_the_memory() -> None:
    splitter = Lines(limit=100)
    splitter.feed(b"x" * 100)
    with pytest.raises(Unavailable, match="longer than 100 bytes"):
        splitter.feed(b"x")


class Canned:
    """A stream that gives out prepared chunks and remembers what it was asked."""

    def __init__(self, *chunks: bytes) -> None:
        self.chunks = chunks
        self.asked: tuple[str, Query] | None = None

    async def stream(self, path: str, params: Query, *, silence: float) -> AsyncGenerator[bytes, None]:
        self.asked = path, params
        for chunk in self.chunks:
            yield chunk


def line(kind: str, **metadata: Any) -> bytes:
    return msgspec.json.encode({"type": kind, "object": {"kind": "Pod", "metadata": metadata}}) + b"\n"


async def frames_of(streams: Canned, selection: Selection[Object]) -> list[Frame[Object]]:
    batches = watch(streams, selection, "41", timeout_seconds=300, silence=100)
    return [frame async for batch in batches for frame in batch]


async def test_each_kind_of_event_is_its_own_frame() -> None:
    status = msgspec.json.encode({"type": "ERROR", "object": {"code": 410, "reason": "Expired", "message": "too old"}})
    streams = Canned(line("ADDED", name="a"), line("MODIFIED", name="a"), line("DELETED", name="a") + status + b"\n")
    frames = await frames_of(streams, Selection(PODS))
    assert [type(frame) for frame in frames] == [Added, Modified, Deleted, Failed]
    assert isinstance(frames[-1], Failed)
    assert frames[-1].object.code == 410


async def test_a_bookmark_is_read_although_its_pod_has_no_containers() -> None:
    # A real server sends `"spec": {"containers": null}` in the bookmark of a pod watch.
    bookmark = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"77"},"spec":{"containers":null}}}\n'
    (frame,) = await frames_of(Canned(bookmark), Selection(PODS))
    assert isinstance(frame, Bookmark)
    assert frame.object.metadata.resource_version == "77"


async def test_a_watch_asks_for_bookmarks_from_a_version_with_its_selectors() -> None:
    streams = Canned()
    await frames_of(streams, Selection(PODS, "team", labels="ray.io/cluster", fields="status.phase=Running"))
    assert streams.asked == (
        "/api/v1/namespaces/team/pods",
        {
            "watch": True,
            "allowWatchBookmarks": True,
            "resourceVersion": "41",
            "timeoutSeconds": 300,
            "labelSelector": "ray.io/cluster",
            "fieldSelector": "status.phase=Running",
        },
    )


async def test_a_stream_that_is_not_a_watch_is_named_as_such() -> None:
    with pytest.raises(Unavailable, match=r"watch of pods in team: .*the stream is not a watch"):
        await frames_of(Canned(b"<html>502 from a proxy</html>\n"), Selection(PODS, "team"))
