"""What each kind of receiver gets: headline, line, confidence, cluster, duration, seen before, link, and no secret."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal

from raykeeper.history.alert_receivers import Receiver
from raykeeper.history.alerts.bodies import body_of, endpoint_of
from raykeeper.history.alerts.model import Alert, AlertCause, AlertJob, SeenBefore
from raykeeper.history.alerts.sender import signature

AT = datetime(2026, 11, 17, 12, 0, tzinfo=UTC)
SECRET = "hunter2hunter2"
ALERT = Alert(
    version=1,
    id="0123456789abcdef0123456789abcdef",
    event="job_failed",
    receiver="ops",
    namespace="team-a",
    cluster="train",
    session="session_1",
    job=AlertJob(
        "nightly", "02000000", "nightly", f"python train.py --password {SECRET}", "FAILED", "failed", AT, AT, 90
    ),
    cause=AlertCause(
        headline=f"ValueError: <!channel> cannot reach postgres://me:{SECRET}@db/x",
        what="task parse",
        where="train.py:34",
        then="",
        confidence="confirmed",
        kind="raised_exception",
        fingerprint="5d0c",
        is_provisional=False,
    ),
    seen_before=SeenBefore(3, AT),
    link="https://history.example.com/s/team-a/train/session_1/job/nightly",
)


def body(kind: Literal["webhook", "slack", "alertmanager"], alert: Alert = ALERT) -> Any:
    text = bytes(body_of(alert, Receiver("ops", kind, "https://x"), AT).json).decode()
    assert SECRET not in text
    return json.loads(text)


def test_a_webhook_gets_the_versioned_alert() -> None:
    told = body("webhook")
    assert told["version"] == 1
    assert told["id"] == ALERT.id
    assert told["job"]["name"] == "nightly"
    assert told["job"]["duration_seconds"] == 90
    assert told["cause"]["where"] == "train.py:34"
    assert told["seen_before"] == {"runs": 3, "last_at": "2026-11-17T12:00:00Z"}
    assert told["link"].endswith("/job/nightly")


def test_slack_gets_blocks_in_which_nothing_a_job_wrote_is_markup() -> None:
    told = body("slack")
    text = json.dumps(told)
    assert "<!channel>" not in text
    assert "&lt;!channel&gt;" in text
    header, section, context, actions = told["blocks"]
    assert header["text"]["text"] == "nightly failed"
    assert "train.py:34 · task parse" in section["text"]["text"]
    assert "team-a/train · ran 1 min 30 s · confirmed · seen before in 3 other runs" in context["elements"][0]["text"]
    assert actions["elements"][0]["url"] == ALERT.link


def test_a_provisional_cause_is_called_so() -> None:
    told = body("slack", replace(ALERT, cause=replace(ALERT.cause, is_provisional=True)))
    assert "provisional" in told["blocks"][2]["elements"][0]["text"]


def test_alertmanager_gets_labels_by_which_alerts_are_grouped_and_routed() -> None:
    [told] = body("alertmanager")
    assert told["labels"]["alertname"] == "RayJobFailed"
    assert told["labels"]["cause"] == "raised_exception"
    assert told["annotations"]["summary"].startswith("nightly failed: ValueError")
    assert told["startsAt"] < told["endsAt"]
    assert told["generatorURL"] == ALERT.link


def test_alertmanagers_path_is_added_once() -> None:
    receiver = Receiver("am", "alertmanager", "")
    whole = "http://am:9093/api/v2/alerts"
    assert endpoint_of(receiver, "http://am:9093") == endpoint_of(receiver, "http://am:9093/") == whole
    assert endpoint_of(receiver, whole) == whole


def test_a_receiver_can_check_who_signed_a_body_and_when() -> None:
    assert signature("secret", 7, b"{}") != signature("secret", 8, b"{}")
    assert signature("secret", 7, b"{}").startswith("t=7,v1=")
