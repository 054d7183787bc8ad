"""Asks a Serve application so many times a second, whether it answers or not, and prints what came of it.

Each second a line of JSON: how many requests have ended, how many failed with which error, and how many got which
answer, all since the start.
"""

import json
import sys
import threading
import time
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

url, rate, patience = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
answers: Counter[str] = Counter()
failures: Counter[str] = Counter()
lock = threading.Lock()


def ask() -> None:
    """One request, over a connection of its own."""
    try:
        with urllib.request.urlopen(url, timeout=patience) as response:
            text, counter = response.read().decode(), answers
    except OSError as error:
        text, counter = str(error), failures
    with lock:
        counter[text] += 1


with ThreadPoolExecutor(max_workers=max(1, int(rate * patience))) as pool:
    began, asked, told = time.monotonic(), 0, 0
    while True:
        pool.submit(ask)
        asked += 1
        if time.monotonic() - began > told + 1:
            told = int(time.monotonic() - began)
            with lock:
                counts = {"ended": answers.total() + failures.total(), "failed": failures, "answers": answers}
                print(json.dumps(counts), flush=True)
        time.sleep(max(0.0, began + asked / rate - time.monotonic()))
