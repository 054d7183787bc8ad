"""An idle Ray head as its collector sees it: one event a second, a line in a log now and then, a dashboard, metrics.

Arguments: Ray's folder, the port of the collector's sink, the port for the dashboard and the metrics; then, for a head
that is busy, how many events and how many bytes of output it has in a second. Runs until it is killed.
"""

from __future__ import annotations

import http.client
import json
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import zstandard

from support.ray_event_batches import EventMaker, body_of

SESSION = "session_2026-11-15_20-09-58_472817_9"
NODE = "a" * 56
EVENT_SECONDS = 1.0  # a Ray 2.60 head with Serve up sends about one event a second
LOG_SECONDS = 10.0
RECORDED = Path(__file__).parents[2] / "tests" / "collector" / "samples" / "recorded" / "ray-2.60.0-head.txt.zst"


def recorded_metrics() -> bytes:
    """What a real head of Ray 2.60 shows, as if it were this one: 370 KB."""
    text = zstandard.decompress(RECORDED.read_bytes(), 1 << 24)
    return re.sub(rb'SessionName="[^"]*"', f'SessionName="{SESSION}"'.encode(), text)


class IdleDashboard(BaseHTTPRequestHandler):
    """Says the same each time, but for the statistics of nodes."""

    metrics = recorded_metrics()

    def do_GET(self) -> None:
        if self.path == "/metrics":
            self._answer(self.metrics)
            return
        answers = {
            "/api/version": {"ray_version": "2.60.0", "session_name": SESSION},
            "/nodes?view=summary&nocache=1": {"data": {"summary": [{"now": time.time()}]}},
            "/api/jobs/": [],
        }
        self._answer(json.dumps(answers.get(self.path, {"result": True})).encode())

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: the benchmark prints figures alone."""


def main(root: Path, sink_port: int, dashboard_port: int, events: int = 1, output_bytes: int = 0) -> None:
    logs = root / SESSION / "logs"
    logs.mkdir(parents=True)
    (root / SESSION / f"gcs_server_port_{NODE}").write_text("6379")
    (root / SESSION / f"metrics_export_port_{NODE}").write_text(str(dashboard_port))
    (root / "session_latest").symlink_to(root / SESSION)
    dashboard = ThreadingHTTPServer(("127.0.0.1", dashboard_port), IdleDashboard)
    threading.Thread(target=dashboard.serve_forever, daemon=True).start()
    maker, said_at = EventMaker(session=SESSION, node=NODE), 0.0
    connection = http.client.HTTPConnection("127.0.0.1", sink_port)
    while True:
        began = time.monotonic()
        connection.request("POST", "/v1/events", body_of(maker.events(events)))
        connection.getresponse().read()
        if time.monotonic() - said_at > LOG_SECONDS:
            said_at = time.monotonic()
            with (logs / "raylet.out").open("a") as file:
                file.write("[2026-11-15 20:10:29,650 I 23 23] (raylet) nothing happens\n")
        if output_bytes:
            with (logs / "worker-busy.out").open("a") as file:
                file.write(
                    f"{began:.3f} step is done, and this is what it had to say about it\n" * (output_bytes // 64)
                )
        time.sleep(max(0.0, began + EVENT_SECONDS - time.monotonic()))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
