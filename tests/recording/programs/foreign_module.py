"""The driver finds a module by a path of its own, which workers do not have."""

import importlib
import sys
from pathlib import Path
from tempfile import mkdtemp

import ray

folder = Path(mkdtemp(prefix="rk-lib-"))
(folder / "feature_lib.py").write_text("def scale(value):\n    return value * 2\n")
sys.path.insert(0, str(folder))
feature_lib = importlib.import_module("feature_lib")


@ray.remote(max_retries=0)
def features(function, row):
    return function(row)


ray.init()
print(ray.get([features.remote(feature_lib.scale, row) for row in range(4)]))
