"""The driver finds its input stale, says so, and leaves with an exit code of its own."""

import sys

import ray


@ray.remote
def age_of(table):
    return {"orders": 3, "users": 51}[table]


ray.init()
ages = dict(zip(["orders", "users"], ray.get([age_of.remote("orders"), age_of.remote("users")])))
stale = [table for table, hours in ages.items() if hours > 24]
if stale:
    print(f"ERROR: refusing to run, stale inputs: {stale}", file=sys.stderr)
    sys.exit(3)
