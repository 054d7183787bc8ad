"""Memory that large answers took is given back."""

from __future__ import annotations

import subprocess
import sys

MIB = 1 << 20

ANSWER_TWICE = """
import re, sys
from pathlib import Path
from raykeeper.history.program import give_memory_back

def resident_bytes():
    return int(re.search(r"VmRSS:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) * 1024

give_memory_back()
before = resident_bytes()
first = b"x" * (24 << 20)
del first
second = b"x" * (20 << 20)
behind_it = [bytes(1000) for _ in range(1000)]
del second
print(resident_bytes() - before)
"""


def test_what_a_large_answer_took_is_not_kept_because_something_small_lies_behind_it() -> None:
    done = subprocess.run([sys.executable, "-c", ANSWER_TWICE], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 8 * MIB
