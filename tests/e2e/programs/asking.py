"""Asks a Serve application up to fifty times a second and prints each answer that is another than the one before.

A failed request is printed as such; the last line of a quiet stretch is a count.
"""

import sys
import time
import urllib.request

last, asked, failed = "", 0, 0
while True:
    asked += 1
    try:
        with urllib.request.urlopen(sys.argv[1], timeout=10) as response:
            answer = response.read().decode()
    except OSError as error:
        failed += 1
        answer = f"FAILED {error}"
    if answer != last or asked % 100 == 0:
        print(f"asked={asked} failed={failed} answer={answer}", flush=True)
        last = answer
    time.sleep(0.02)
