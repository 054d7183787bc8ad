"""A search in what real Ray left finds what reading every file finds, in our layout and in KubeRay's."""

from __future__ import annotations

import pytest

from raykeeper.history.logs.store import LogStore
from raykeeper.history.search.log_lines import LogSearch
from raykeeper.history.search.match import make_matcher
from raykeeper.history.search.model import SearchRequest
from raykeeper.history.store.kuberay.overlay import KubeRayOverlay
from raykeeper.layout.keys import SessionId
from support.clocks import ManualClock
from support.goldensession import Moments
from support.history_scene import HEAD_ID, local_store
from support.kuberay_buckets import PLAIN, KubeRayBucket

Found = set[tuple[str, str, int]]
"""Node, generation and offset of each line."""


async def found_in(logs: LogStore, session: SessionId, wanted: SearchRequest) -> Found:
    search = LogSearch(logs, session, wanted, make_matcher(wanted))
    hits = [hit async for step in search.steps() for hit in step.hits]
    found = {(hit.node_id, hit.run.stored.generation, hit.span[0]) for hit in hits}
    assert len(found) == len(hits)
    return found


async def read_plainly(logs: LogStore, session: SessionId, words: bytes) -> Found:
    """Every line of every file that holds the words."""
    found: Found = set()
    for node_id in await logs.node_ids(session):
        for generation, stored in (await logs.files(session, node_id)).by_generation.items():
            text, at = b"".join([piece async for piece in logs.reader.stream(stored, 0, stored.size)]), 0
            for line in text.split(b"\n"):
                if words in line:
                    found.add((node_id, generation, at))
                at += len(line) + 1
    return found


@pytest.mark.parametrize("words", ["raylet", "Error", "golden-fail", "job-driver"])
async def test_real_logs_are_searched_to_the_last_line(ingested_moments: Moments, words: str) -> None:
    moment = ingested_moments["final"]
    logs = LogStore(moment.store, ManualClock())
    expected = await read_plainly(logs, moment.session.id, words.encode())
    assert expected
    assert await found_in(logs, moment.session.id, SearchRequest(words)) == expected
    as_pattern = SearchRequest(words.replace("l", "[l]"), is_regex=True)
    assert await found_in(logs, moment.session.id, as_pattern) == expected


async def test_logs_in_a_bucket_of_kuberays_are_searched_too(tmp_path_factory: pytest.TempPathFactory) -> None:
    store = local_store(tmp_path_factory.mktemp("kuberay"))
    bucket = KubeRayBucket(store, PLAIN)
    await bucket.put_marker()
    line = b"2026-11-15 20:10:00 INFO nothing to see here\n"
    text = line * 60_000 + b"the needle\n" + line * 60_000 + b"needle at the end"
    await bucket.put_logs(HEAD_ID, {"worker-1.out": text, "old/raylet.out": b"a needle too\n"})
    logs = LogStore(KubeRayOverlay(store, ManualClock()), ManualClock())
    found = await found_in(logs, PLAIN.session, SearchRequest("needle"))
    assert {offset for _, _, offset in found} == {len(line) * 60_000, len(text) - 17, 0}
