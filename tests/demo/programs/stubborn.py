"""A program that does not end when it is asked to, and whose child has left its process group and its environment.

Argument: the file to which that child writes, as Ray's workers do.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time

signal.signal(signal.SIGTERM, signal.SIG_IGN)
with open(sys.argv[1], "wb") as output:  # noqa: PTH123 - quicker to start
    child = subprocess.Popen(["/bin/sleep", "600"], stdout=output, start_new_session=True, env={})
print(child.pid, flush=True)
time.sleep(600)
