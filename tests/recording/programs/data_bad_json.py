"""Ray Data: a line of a file of JSON lines is cut off."""

from pathlib import Path
from tempfile import mkdtemp

import ray

folder = Path(mkdtemp(prefix="rk-events-"))
(folder / "day-1.jsonl").write_text('{"user": "a", "clicks": 3}\n' * 50)
(folder / "day-2.jsonl").write_text('{"user": "b", "clicks": 1}\n' * 50 + '{"user": "c", "cli')
ray.init()
events = ray.data.read_json(str(folder))
print(events.sum("clicks"))
