"""An alert as each kind of receiver wants it. Pure. Every body is `Masked`: no secret leaves in one."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from raykeeper.history.alert_receivers import Receiver
from raykeeper.history.alerts.model import Alert
from raykeeper.history.text import counted, length_in_words, without_ansi
from raykeeper.masking import Masked, masked, masked_value

ALERTMANAGER_PATH = "/api/v2/alerts"
_FIRING = timedelta(hours=1)  # Alertmanager would call it resolved after five minutes
_SLACK_CHARS = 2800  # of a block's text, which Slack refuses beyond 3,000
_LABEL_CHARS = 200


def body_of(alert: Alert, receiver: Receiver, now: datetime) -> Masked:
    """What is posted. The alert is masked before anything is made of it, and the result once more."""
    clean = masked_value(alert)
    if receiver.kind == "slack":
        return masked(_slack(clean))
    if receiver.kind == "alertmanager":
        return masked(_alertmanager(clean, now))
    return masked(clean)


def endpoint_of(receiver: Receiver, url: str) -> str:
    """The address that is posted to. For Alertmanager, the path of its API is added to its own address."""
    if receiver.kind != "alertmanager" or url.rstrip("/").endswith(ALERTMANAGER_PATH):
        return url
    return url.rstrip("/") + ALERTMANAGER_PATH


def _title(alert: Alert) -> str:
    words = {"with failures": "succeeded with failures", "stopped": "was stopped"}
    return f"{alert.job.name} {words.get(alert.job.outcome, 'failed')}"


def _whose(alert: Alert) -> str:
    return " · ".join(part for part in (alert.cause.where, alert.cause.what) if part)


def _confidence(alert: Alert) -> str:
    cause = alert.cause
    return " · ".join(part for part in (cause.confidence, "provisional" if cause.is_provisional else "") if part)


def _where(alert: Alert) -> str:
    place = f"{alert.namespace}/{alert.cluster}" if alert.cluster else f"namespace {alert.namespace}"
    seconds = alert.job.duration_seconds
    if seconds is None:
        return place
    length = length_in_words(timedelta(seconds=seconds)).replace("\xa0", " ")  # which pages need and chats do not
    return f"{place} · ran {length}"


def _seen(alert: Alert) -> str:
    seen = alert.seen_before
    if not seen.runs:
        return "" if not alert.cause.fingerprint or alert.cause.is_provisional else "not seen before in this namespace"
    last = f", last on {seen.last_at:%Y-%m-%d %H:%M} UTC" if seen.last_at else ""
    return f"seen before in {counted(seen.runs, 'other run')}{last}"


def _slack(alert: Alert) -> dict[str, Any]:
    cause = alert.cause
    lines = [f"*{_mrkdwn(cause.headline)}*", _mrkdwn(_whose(alert)), _mrkdwn(cause.then)]
    context = [part for part in (_where(alert), _confidence(alert), _seen(alert)) if part]
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": {"type": "plain_text", "text": _title(alert)[:150]}},
        {"type": "section", "text": {"type": "mrkdwn", "text": "\n".join(filter(None, lines))[:_SLACK_CHARS]}},
        {"type": "context", "elements": [{"type": "mrkdwn", "text": _mrkdwn(" · ".join(context))[:_SLACK_CHARS]}]},
    ]
    if alert.link:
        button = {"type": "button", "text": {"type": "plain_text", "text": "Why it failed"}, "url": alert.link}
        blocks.append({"type": "actions", "elements": [button]})
    return {"text": _mrkdwn(f"{_title(alert)}: {cause.headline}")[:_SLACK_CHARS], "blocks": blocks}


def _mrkdwn(text: str) -> str:
    """As text: what a job wrote is no link, and calls nobody by `<!channel>`."""
    plain = without_ansi(text).replace("\n", " ")
    return plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _alertmanager(alert: Alert, now: datetime) -> list[dict[str, Any]]:
    labels = {
        "alertname": "RayJobFailed",
        "severity": "warning",
        "namespace": alert.namespace,
        "ray_cluster": alert.cluster,
        "ray_session": alert.session,
        "ray_job": alert.job.name,
        "outcome": alert.job.outcome,
        "cause": alert.cause.kind,
        "fingerprint": alert.cause.fingerprint,
    }
    described = [_whose(alert), alert.cause.then, _where(alert), _confidence(alert), _seen(alert)]
    annotations = {
        "summary": f"{_title(alert)}: {alert.cause.headline}",
        "description": "\n".join(filter(None, described)),
        "link": alert.link,
    }
    posted: dict[str, Any] = {
        "labels": {name: without_ansi(text)[:_LABEL_CHARS] for name, text in labels.items() if text},
        "annotations": {name: without_ansi(text)[:_SLACK_CHARS] for name, text in annotations.items() if text},
        "startsAt": alert.job.ended_at,
        "endsAt": now + _FIRING,
    }
    return [posted | ({"generatorURL": alert.link} if alert.link else {})]
