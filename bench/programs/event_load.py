"""Posts batches of events as fast as they are taken: `event_load <port> <connections> <seconds>`.

Prints one JSON line: batches, bytes, seconds, p50 and p99 of the answers in milliseconds.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time

from bench.events import EVENTS_PER_BATCH, batches

DIFFERENT_BATCHES = 48  # far more text than a compressor looks back on, so that a batch sent again is as good as new


class Poster(threading.Thread):
    """One connection with one request under way, as Ray's agent has it."""

    def __init__(self, port: int, bodies: list[bytes], until: float) -> None:
        super().__init__()
        self.seconds: list[float] = []
        self.bytes = 0
        self._port = port
        self._bodies = bodies
        self._until = until

    def run(self) -> None:
        with socket.create_connection(("127.0.0.1", self._port)) as connection:
            while time.monotonic() < self._until:
                body = self._bodies[len(self.seconds) % len(self._bodies)]
                started = time.monotonic()
                head = f"POST /v1/events HTTP/1.1\r\nHost: bench\r\nContent-Length: {len(body)}\r\n\r\n"
                connection.sendall(head.encode())
                connection.sendall(body)
                answer = connection.recv(4096)
                if b" 200 " not in answer:
                    raise RuntimeError(answer.decode())
                self.seconds.append(time.monotonic() - started)
                self.bytes += len(body)


def main(port: int, connections: int, seconds: float) -> None:
    bodies = list(batches(DIFFERENT_BATCHES))
    started = time.monotonic()
    step = len(bodies) // connections
    posters = [Poster(port, bodies[n * step :] + bodies[: n * step], started + seconds) for n in range(connections)]
    for poster in posters:
        poster.start()
    for poster in posters:
        poster.join()
    took = time.monotonic() - started
    times = sorted(second for poster in posters for second in poster.seconds)
    figures = {
        "events": len(times) * EVENTS_PER_BATCH,
        "bytes": sum(poster.bytes for poster in posters),
        "seconds": took,
        "p50_ms": times[len(times) // 2] * 1e3,
        "p99_ms": times[len(times) * 99 // 100] * 1e3,
    }
    print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
