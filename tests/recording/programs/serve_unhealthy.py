"""Ray Serve: a replica loses its database and fails its health check, so that Serve replaces it."""

import time

import requests
from ray import serve

PORT = 18765


@serve.deployment(health_check_period_s=1, health_check_timeout_s=5, ray_actor_options={"num_cpus": 0.3})
class Catalog:
    def __init__(self):
        self.started = time.monotonic()

    def check_health(self):
        if time.monotonic() - self.started > 6:
            raise ConnectionError("catalog database db-3:5432 is gone")

    def __call__(self):
        return "ok"


serve.start(http_options={"port": PORT})
serve.run(Catalog.bind(), name="catalog")
for _ in range(24):
    try:
        requests.get(f"http://127.0.0.1:{PORT}/", timeout=10)
    except requests.RequestException as error:
        print(error)
    time.sleep(0.5)
serve.shutdown()
