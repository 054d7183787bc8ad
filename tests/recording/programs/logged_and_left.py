"""The driver catches what a task raised, logs it with its traceback, and leaves with a code."""

import logging
import sys

import ray

logging.basicConfig(level=logging.INFO)
log = logging.getLogger("etl")


@ray.remote
def load(table):
    if table == "events":
        raise LookupError(f"no partition of {table} for 2026-11-16")
    return 10


ray.init()
for table in ("users", "events", "orders"):
    try:
        log.info("%s: %s rows", table, ray.get(load.remote(table)))
    except Exception:
        log.exception("loading %s failed", table)
        sys.exit(4)
