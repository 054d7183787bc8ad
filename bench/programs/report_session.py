"""Makes the report on a session whose tables are in a folder, as a server does; prints seconds and memory."""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from pathlib import Path

import msgspec

from raykeeper.history.http.keeper_api.overview import report_of
from raykeeper.history.ingest.session import Session
from raykeeper.history.query.context import SessionContext
from raykeeper.history.query.database import Database
from raykeeper.history.report.make import make_report
from support.large_tables import FAILURES, known_session
from support.report_scene import no_logs


async def measure(session: Session, folder: Path) -> dict[str, float]:
    """Cold: nobody asked before. Warm: the same request again, of a session that has not changed. Anew: it has."""
    database = Database(folder)
    context = SessionContext(session, database, no_logs())
    try:
        cold_seconds, body = await _timed(context)
        warm_seconds, _ = await _timed(context)
        began = time.perf_counter()
        await make_report(context)
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


async def _timed(context: SessionContext) -> tuple[float, bytes]:
    began = time.perf_counter()
    body = msgspec.json.encode(await report_of(context, None))
    return time.perf_counter() - began, body


if __name__ == "__main__":
    place = Path(sys.argv[1])
    stored = known_session({file.stem: (file,) for file in place.glob("*.parquet")})
    print(json.dumps(asyncio.run(measure(stored, place))))
