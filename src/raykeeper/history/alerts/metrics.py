"""What Prometheus hears of alerts. Labels are names of receivers and of rules, both of them few."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter


class AlertMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self.sent = Counter(
            "raykeeper_history_alerts_sent",
            "Alerts that a receiver took, by receiver and kind of cause.",
            ("receiver", "cause"),
            registry=registry,
        )
        self.failed_attempts = Counter(
            "raykeeper_history_alert_attempts_failed",
            "Attempts to send an alert that failed; they are made again.",
            ("receiver",),
            registry=registry,
        )
        self.given_up = Counter(
            "raykeeper_history_alerts_given_up",
            "Alerts that no receiver took until they were too old.",
            ("receiver",),
            registry=registry,
        )
