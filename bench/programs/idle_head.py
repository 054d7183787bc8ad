"""An idle Ray head as its collector sees it: one event a second, a line in a log now and then, a dashboard.

Arguments: Ray's folder, the port of the collector's sink, the port for the dashboard. Runs until it is killed.
"""

from __future__ import annotations

import http.client
import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from support.ray_event_batches import EventMaker, body_of

SESSION = "session_2026-11-15_20-09-58_472817_9"
NODE = "a" * 56
EVENT_SECONDS = 1.0  # a Ray 2.60 head with Serve up sends about one event a second
LOG_SECONDS = 10.0


class IdleDashboard(BaseHTTPRequestHandler):
    """Says the same each time, but for the statistics of nodes."""

    def do_GET(self) -> None:
        answers = {
            "/api/version": {"ray_version": "2.60.0", "session_name": SESSION},
            "/nodes?view=summary&nocache=1": {"data": {"summary": [{"now": time.time()}]}},
            "/api/jobs/": [],
        }
        body = json.dumps(answers.get(self.path, {"result": True})).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: the benchmark prints figures alone."""


def main(root: Path, sink_port: int, dashboard_port: int) -> None:
    logs = root / SESSION / "logs"
    logs.mkdir(parents=True)
    (root / SESSION / f"gcs_server_port_{NODE}").write_text("6379")
    (root / "session_latest").symlink_to(root / SESSION)
    dashboard = ThreadingHTTPServer(("127.0.0.1", dashboard_port), IdleDashboard)
    threading.Thread(target=dashboard.serve_forever, daemon=True).start()
    maker, said_at = EventMaker(session=SESSION, node=NODE), 0.0
    connection = http.client.HTTPConnection("127.0.0.1", sink_port)
    while True:
        connection.request("POST", "/v1/events", body_of(maker.events(1)))
        connection.getresponse().read()
        if time.monotonic() - said_at > LOG_SECONDS:
            said_at = time.monotonic()
            with (logs / "raylet.out").open("a") as file:
                file.write("[2026-11-15 20:10:29,650 I 23 23] (raylet) nothing happens\n")
        time.sleep(EVENT_SECONDS)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
