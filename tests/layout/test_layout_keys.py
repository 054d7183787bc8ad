"""Keys follow from facts, and facts from keys."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raykeeper.layout import keys
from raykeeper.layout.keys import (
    CatalogKey,
    EventSegmentKey,
    KubeFactsKey,
    LogIndexKey,
    LogPackKey,
    ObservedKey,
    PolledKey,
    RejectsKey,
    SealedKey,
    SessionId,
    parse_catalog_key,
    parse_kube_facts_key,
    parse_log_index_key,
    parse_observed_key,
    parse_polled_key,
    parse_sealed_key,
)
from raykeeper.layout.names import from_segment, to_segment

SESSION = SessionId("team-a", "train", "session_2026-11-15_19-11-48_425996_9")
NODE = "a5094a1e700be1"
SEALED_NS = int(datetime(2026, 11, 15, 19, 12, 35, tzinfo=UTC).timestamp()) * 10**9 + 705

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
sessions = st.builds(SessionId, names, names, names)
nanoseconds = st.integers(min_value=10**18, max_value=4 * 10**18)


def test_keys_are_those_of_the_contract() -> None:
    data = "v1/data/team-a/train/session_2026-11-15_19-11-48_425996_9"
    name = f"{SEALED_NS}-000007"
    assert keys.session_record_key(SESSION) == f"{data}/session.json"
    assert keys.closed_record_key(SESSION) == f"{data}/closed.json"
    assert keys.node_record_key(SESSION, NODE) == f"{data}/nodes/{NODE}/node.json"
    assert keys.end_record_key(SESSION, NODE) == f"{data}/nodes/{NODE}/end.json"
    assert EventSegmentKey(SESSION, NODE, SEALED_NS, 7).key == f"{data}/events/2026-11-15T19/{NODE}/{name}.ndjson.zst"
    assert LogPackKey(SESSION, NODE, SEALED_NS, 7).key == f"{data}/logs/2026-11-15T19/{NODE}/{name}.pack"
    assert RejectsKey(SESSION, NODE, SEALED_NS, 7).key == f"{data}/rejects/2026-11-15T19/{NODE}/{name}.ndjson.zst"
    assert (
        PolledKey(SESSION, "/api/jobs/", 1794770033063).key == f"{data}/polled/%2Fapi%2Fjobs%2F/1794770033063.json.zst"
    )
    assert (
        KubeFactsKey("team-a", "train", "3f", SEALED_NS).key == f"v1/data/team-a/train/kube/3f/{SEALED_NS}.ndjson.zst"
    )
    assert ObservedKey("9c", "team-a", "train", "3f").key == "v1/observed/9c/team-a~train~3f"
    assert keys.table_key(SESSION, "tasks", "ab12") == f"{data}/tables/tasks/ab12.parquet"
    assert keys.manifest_key(SESSION, 3) == f"{data}/tables/manifests/000000003.json"
    indexes = LogIndexKey(SESSION, NODE, "ab" * 16, 720)
    assert indexes.key == f"{data}/tables/log-indexes/{NODE}/{'ab' * 16}-720.msgpack.zst"
    entry = CatalogKey(date(2026, 11, 15), SESSION, "start")
    assert entry.key == "v1/catalog/2026-11-15/team-a~train~session_2026-11-15_19-11-48_425996_9.start.json"


@given(
    kind=st.sampled_from([EventSegmentKey, LogPackKey, RejectsKey]),
    session=sessions,
    node=names,
    ns=nanoseconds,
    sequence=st.integers(min_value=0, max_value=999_999),
)
def test_a_sealed_key_gives_its_facts_back(
    kind: type[SealedKey], session: SessionId, node: str, ns: int, sequence: int
) -> None:
    facts = kind(session, node, ns, sequence)
    assert parse_sealed_key(facts.key) == facts
    assert type(parse_sealed_key(facts.key)) is kind


@given(session=sessions, node=names, digest=st.binary(min_size=16, max_size=16), packs=st.integers(1, 10**8))
def test_a_key_of_log_indexes_gives_its_facts_back(session: SessionId, node: str, digest: bytes, packs: int) -> None:
    facts = LogIndexKey(session, node, digest.hex(), packs)
    assert parse_log_index_key(facts.key) == facts


@pytest.mark.parametrize("name", ["ab-1.msgpack.zst", f"{'ab' * 16}-01.msgpack.zst", f"{'ab' * 16}.msgpack.zst"])
def test_what_is_no_key_of_log_indexes_is_not_taken_for_one(name: str) -> None:
    assert parse_log_index_key(LogIndexKey.prefix(SESSION, NODE) + name) is None


@given(session=sessions, name=names, ms=st.integers(min_value=10**12, max_value=9 * 10**12))
def test_a_polled_key_gives_its_facts_back(session: SessionId, name: str, ms: int) -> None:
    facts = PolledKey(session, name, ms)
    assert parse_polled_key(facts.key) == facts


@given(session=sessions, day=st.dates(), part=st.sampled_from(["start", "end", "summary"]))
def test_a_catalog_key_gives_its_facts_back(session: SessionId, day: date, part: keys.CatalogPart) -> None:
    facts = CatalogKey(day, session, part)
    assert parse_catalog_key(facts.key) == facts


@given(namespace=names, cluster=names, uid=names, ns=nanoseconds)
def test_a_key_of_kubernetes_facts_gives_its_facts_back(namespace: str, cluster: str, uid: str, ns: int) -> None:
    facts = KubeFactsKey(namespace, cluster, uid, ns)
    assert parse_kube_facts_key(facts.key) == facts


@given(observer=names, namespace=names, cluster=names, uid=names)
def test_a_key_of_a_cluster_seen_gives_its_facts_back(observer: str, namespace: str, cluster: str, uid: str) -> None:
    facts = ObservedKey(observer, namespace, cluster, uid)
    assert parse_observed_key(facts.key) == facts


@given(names)
def test_any_name_is_one_segment_that_no_folder_and_no_separator_can_be_mistaken_for(name: str) -> None:
    segment = to_segment(name)
    assert "/" not in segment
    assert "~" not in segment
    assert segment not in {".", ".."}
    assert from_segment(segment) == name


@given(first=sessions, second=sessions)
def test_no_session_lies_inside_another(first: SessionId, second: SessionId) -> None:
    assert first == second or not first.prefix.startswith(second.prefix)


@pytest.mark.parametrize(
    "key",
    [
        "",
        "v1/data/a/b/c/session.json",
        "v1/data/a/b/c/events/2026-11-15T18/n/1794770033063000000-000001.ndjson.zst",  # another hour than its time
        "v1/data/a/b/c/events/2026-11-15T19/n/1794770033063000000-000001.pack",
        "v1/data/a/../c/events/2026-11-15T19/n/1794770033063000000-000001.ndjson.zst",
        "v1/data/a/%62/c/events/2026-11-15T19/n/1794770033063000000-000001.ndjson.zst",
        "v2/data/a/b/c/events/2026-11-15T19/n/1794770033063000000-000001.ndjson.zst",
    ],
)
def test_what_the_layout_does_not_write_is_not_taken_for_its_own(key: str) -> None:
    assert parse_sealed_key(key) is None
    assert parse_polled_key(key) is None
    assert parse_catalog_key(key) is None
    assert parse_kube_facts_key(key) is None
    assert parse_observed_key(key) is None


def test_an_empty_name_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        to_segment("")


def test_keys_of_one_node_sort_by_time() -> None:
    made = [EventSegmentKey(SESSION, NODE, SEALED_NS + late, number) for late in (0, 10**9) for number in (1, 2, 11)]
    assert [facts.key for facts in made] == sorted(facts.key for facts in made)
