"""A driver that cancels tasks which take too long, and then asks for their results."""

from __future__ import annotations

import time

import ray  # type: ignore[import-not-found, unused-ignore]  # the bed's environment has it, ours does not

DEADLINE_SECONDS = 5.0


def crawl(site: int) -> int:
    print(f"crawling site {site}", flush=True)
    for _ in range(1 if site else 600):
        time.sleep(1)
    return site


def main() -> None:
    ray.init(log_to_driver=False)
    sites = [ray.remote(num_cpus=0.5)(crawl).remote(site) for site in range(4)]
    _, late = ray.wait(sites, num_returns=len(sites), timeout=DEADLINE_SECONDS)
    while late:  # again, since a worker that is not yet at it does not hear of it
        for site in late:
            ray.cancel(site)
        _, late = ray.wait(sites, num_returns=len(sites), timeout=1.0)
    print(f"crawled: {ray.get(sites)}")


if __name__ == "__main__":
    main()
