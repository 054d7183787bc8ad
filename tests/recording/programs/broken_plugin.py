"""The driver loads rules that somebody wrote by hand, and they are no Python."""

import importlib
import sys
from pathlib import Path
from tempfile import mkdtemp

import ray

RULES = """
def discount(order):
    return max(0.1, order["total"] / 1000
"""

ray.init()
folder = Path(mkdtemp(prefix="rk-rules-"))
(folder / "pricing_rules.py").write_text(RULES)
sys.path.insert(0, str(folder))
rules = importlib.import_module("pricing_rules")
print(rules.discount({"total": 90}))
