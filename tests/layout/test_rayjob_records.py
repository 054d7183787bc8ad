"""A RayJob's record grows up to a bound, and seeing the same again changes nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raykeeper.layout.keys import RayJobId, parse_rayjob_key
from raykeeper.layout.kube_facts import EventFact
from raykeeper.layout.rayjobs import (
    FIRST_STATES,
    LAST_STATES,
    MOST_CLUSTERS,
    MOST_WARNINGS,
    RayJobAttempt,
    RayJobRecord,
    RayJobState,
    merged_rayjob,
)
from raykeeper.layout.records import decode_record, encode_record

START = datetime(2026, 11, 15, 19, tzinfo=UTC)
names = st.text(min_size=1, max_size=20)


def state(seconds: int, **parts: Any) -> RayJobState:
    return RayJobState(at=START + timedelta(seconds=seconds), **parts)


def record(*states: RayJobState, **parts: Any) -> RayJobRecord:
    return RayJobRecord(namespace="team-a", name="nightly", uid="j-1", states=states, **parts)


def test_what_was_seen_later_follows_what_was_stored() -> None:
    stored = record(state(0, deployment_status="Initializing"), clusters=("nightly-aaaaa",))
    seen = record(state(5, deployment_status="Running", job_id="nightly-xxxxx"), clusters=("nightly-bbbbb",))
    whole = merged_rayjob(stored, seen)
    assert [one.deployment_status for one in whole.states] == ["Initializing", "Running"]
    assert whole.clusters == ("nightly-aaaaa", "nightly-bbbbb")
    assert not whole.is_final
    assert whole.job_ids == ("nightly-xxxxx",)


def test_a_restart_that_sees_the_same_again_changes_nothing() -> None:
    stored = record(
        state(0, deployment_status="Running"),
        state(9, deployment_status="Failed", reason="DeadlineExceeded"),
        attempts=(RayJobAttempt(cluster="a", job_id="x"),),
        clusters=("a", "b"),
    )
    again = msgspec.structs.replace(stored, states=(state(500, deployment_status="Failed", reason="DeadlineExceeded"),))
    assert merged_rayjob(stored, again) == stored


def test_a_record_of_a_rayjob_that_flaps_for_ever_stays_small() -> None:
    whole = record(state(0, deployment_status="Initializing"))
    for number in range(1, 500):
        events = (EventFact(at=START, uid=f"e-{number}", type="Warning", message="quota"),)
        flap = record(state(number, waits_for=f"try {number}"), clusters=(f"c-{number}",), warnings=events)
        whole = merged_rayjob(whole, flap)
    assert len(whole.states) == FIRST_STATES + LAST_STATES
    assert whole.states_left_out == 500 - FIRST_STATES - LAST_STATES
    assert (whole.states[0].deployment_status, whole.states[-1].waits_for) == ("Initializing", "try 499")
    assert (len(whole.clusters), len(whole.warnings)) == (MOST_CLUSTERS, MOST_WARNINGS)


def test_the_first_word_about_a_deletion_counts() -> None:
    deleted = record(state(0), deleted_at=START)
    again = record(deleted_at=START + timedelta(hours=1), was_away_at_deletion=True)
    whole = merged_rayjob(deleted, again)
    assert (whole.deleted_at, whole.was_away_at_deletion, whole.is_final) == (START, False, True)


def test_the_newest_job_of_a_rayjob_is_named_first() -> None:
    attempts = (RayJobAttempt(job_id="first"), RayJobAttempt(job_id="second"))
    assert record(state(0, job_id="third"), state(1), attempts=attempts).job_ids == ("third", "second", "first")


def test_a_record_is_read_as_it_was_written() -> None:
    whole = record(state(0, reason="AppFailed"), attempts=(RayJobAttempt(ended_at=START),), deleted_at=START)
    assert decode_record(encode_record(whole), RayJobRecord) == whole


@pytest.mark.parametrize("year", ["1066", "9999"])
def test_a_time_at_which_no_clock_can_be_is_refused(year: str) -> None:
    text = f'{{"namespace":"a","name":"b","uid":"c","states":[{{"at":"{year}-01-01T00:00:00Z"}}]}}'
    with pytest.raises(msgspec.ValidationError):
        decode_record(text.encode(), RayJobRecord)


@given(namespace=names, rayjob=names, uid=names, other=names)
def test_every_key_about_a_rayjob_gives_it_back(namespace: str, rayjob: str, uid: str, other: str) -> None:
    id_ = RayJobId(namespace, rayjob, uid)
    assert {parse_rayjob_key(key) for key in (id_.key, id_.cluster_key(other), id_.note_key(other))} == {id_}


def test_what_is_no_key_of_a_rayjob_is_not_taken_for_one() -> None:
    assert parse_rayjob_key("v1/rayjobs/team-a/jobs/nightly/%6a.json") is None
    assert parse_rayjob_key("v1/data/team-a/train/kube/uid/1.json") is None
