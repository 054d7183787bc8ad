"""Makes the report on a session whose tables are in a folder, as a server does; prints seconds and memory."""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from pathlib import Path

from large_tables import FAILURES, known_session
from raykeeper.history.asked import Asked, Session
from raykeeper.history.database import Database
from raykeeper.history.keeper.report import report_body
from raykeeper.history.report.making import make_report
from report_scene import NO_LOGS


async def measure(session: Session, folder: Path) -> dict[str, float]:
    """Cold: nobody asked before. Warm: the same request again, of a session that has not changed. Anew: it has."""
    database = Database(folder)
    asked = Asked(session, database, NO_LOGS)
    try:
        cold_seconds, body = await _timed(asked)
        warm_seconds, _ = await _timed(asked)
        began = time.perf_counter()
        await make_report(asked)
        anew_seconds = time.perf_counter() - began
    finally:
        await database.close()
    failures = json.loads(body)["counts"]["failures"]
    if failures != FAILURES:
        raise SystemExit(f"the report tells of {failures} failures instead of {FAILURES}")
    cpu = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "cold_seconds": cold_seconds,
        "warm_seconds": warm_seconds,
        "anew_seconds": anew_seconds,
        "cpu_seconds": cpu.ru_utime + cpu.ru_stime,
        "peak_mb": cpu.ru_maxrss / 1024,
    }


async def _timed(asked: Asked) -> tuple[float, bytes]:
    began = time.perf_counter()
    body = await report_body(asked, None)
    return time.perf_counter() - began, body


if __name__ == "__main__":
    place = Path(sys.argv[1])
    stored = known_session({file.stem: (file,) for file in place.glob("*.parquet")})
    print(json.dumps(asyncio.run(measure(stored, place))))
