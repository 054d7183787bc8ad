"""Keys of retention's objects lead back to what they are about, whatever sessions are called."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raykeeper.layout.keys import SessionId
from raykeeper.layout.retention import (
    DamagedFacts,
    SessionFacts,
    SessionMark,
    begun_key,
    claim_key,
    decode_day_facts,
    encode_day_facts,
    hold_key,
    intent_key,
    parse_claim_key,
    parse_day_facts_key,
    parse_session_mark,
    removed_key,
)

names = st.text("ab.~/%é ", min_size=1, max_size=8) | st.sampled_from(
    ["a.json", "a~begun", "a.begun", "~", ".", "..", "a/b", "session_1"]
)
sessions = st.builds(SessionId, names, names, names)


@settings(max_examples=60)
@given(sessions)
def test_every_key_says_which_session_it_is_about(session: SessionId) -> None:
    keys = (hold_key(session), intent_key(session), begun_key(session), removed_key(session))
    assert len(set(keys)) == 4
    assert [parse_session_mark(key) for key in keys] == [
        SessionMark("holds", session),
        SessionMark("removals", session),
        SessionMark("removals", session, is_begun=True),
        SessionMark("removed", session),
    ]


def test_other_keys_are_no_marks() -> None:
    for key in ("v1/retention/holds/a~b.json", "v1/retention/holds/a~b~c~begun.json", "v1/retention/holds/a~b~%.json"):
        assert parse_session_mark(key) is None
    assert parse_claim_key(claim_key(12)) == 12
    assert parse_claim_key("v1/retention/claims/x.json") is None
    assert parse_day_facts_key("v1/retention/days/2026-13-01/" + "0" * 32 + ".json.zst") is None


def test_facts_of_a_day_are_read_as_they_were_written() -> None:
    at = datetime(2026, 11, 15, tzinfo=UTC)
    facts = (SessionFacts("n", "c", "s", started_at=at, start_written=at, bytes=3, outcome="ok"),)
    key, data = encode_day_facts(date(2026, 11, 15), facts)
    assert parse_day_facts_key(key.key) == key
    assert decode_day_facts(data) == facts
    for damaged in (b"", b"x", data[:-3], encode_day_facts(date(2026, 11, 15), [])[1][:2]):
        with pytest.raises(DamagedFacts):
            decode_day_facts(damaged)
    wrong = SessionFacts("n", "c", "s", started_at=datetime(1, 1, 1, tzinfo=UTC), start_written=at)
    with pytest.raises(DamagedFacts, match="no clock"):
        decode_day_facts(encode_day_facts(date(2026, 11, 15), [wrong])[1])
