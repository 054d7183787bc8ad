"""Debian's Prometheus and promtool, unpacked into the cache: no root is needed, and nothing is installed.

`apt-get download` checks the package against the signed lists of the mirror.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
import yaml

from bed.cache import cache_folder
from bed.daemons import LOOPBACK
from bed.errors import BedError
from bed.locks import file_lock
from bed.node.commands import CommandFailed, find_program, run
from bed.ports import free_port
from bed.processes import Process
from bed.progress import step
from bed.waiting import PATIENCE_SECONDS, wait_until

PACKAGE: Final = "prometheus"
FOLDER_VARIABLE: Final = "RAYKEEPER_BED_PROMETHEUS"
"""Names a folder with `prometheus` and `promtool`, where Debian's cannot be had."""
SECONDS: Final = 600


class PrometheusMissing(BedError):
    """There is none, and none can be had here."""


def prometheus_folder() -> Path:
    """The folder of the programs `prometheus` and `promtool`; fetched once for this user."""
    if chosen := os.environ.get(FOLDER_VARIABLE):
        return Path(chosen)
    if found := find_program("promtool"):
        return Path(found).parent
    folder = cache_folder() / f"prometheus-debian-{platform.machine()}"
    with file_lock(folder.with_suffix(".lock")):
        if not folder.exists():
            _fetch(folder)
    return folder / "usr" / "bin"


def _fetch(folder: Path) -> None:
    if find_program("apt-get") is None or find_program("dpkg") is None:
        raise PrometheusMissing(f"this machine has no apt-get: name a folder with promtool in {FOLDER_VARIABLE}")
    with step(f"fetching Debian's {PACKAGE}"), tempfile.TemporaryDirectory(dir=folder.parent) as made:
        try:
            _download(made)
        except CommandFailed as exc:
            raise PrometheusMissing(f"Debian's {PACKAGE} cannot be fetched: {exc}") from exc
        [package] = Path(made).glob("*.deb")
        run(["dpkg", "-x", str(package), f"{made}/unpacked"], timeout_seconds=SECONDS)
        shutil.move(f"{made}/unpacked", folder)


def _download(folder: str) -> None:
    command = ["env", f"--chdir={folder}", "apt-get", "-q", "download", PACKAGE]
    try:
        run(command, timeout_seconds=SECONDS)
    except CommandFailed:  # the package lists at hand may be old, or none
        if os.geteuid() != 0:
            raise
        run(["apt-get", "-q", "update"], timeout_seconds=SECONDS)
        run(command, timeout_seconds=SECONDS)


@pytest.fixture(scope="session")
def promtool() -> Path:
    """Prometheus' own checker of rules; skips where there is none."""
    try:
        return prometheus_folder() / "promtool"
    except PrometheusMissing as missing:
        pytest.skip(str(missing))


class Prometheus:
    """A server that scrapes some addresses every second; `up()` starts it."""

    def __init__(self, folder: Path, targets: Mapping[str, Sequence[str]], labels: Mapping[str, str]) -> None:
        """`targets` are addresses by the job that they belong to; `labels` are put on all that is scraped."""
        folder.mkdir(parents=True, exist_ok=True)
        jobs = [
            {
                "job_name": job,
                "honor_labels": True,  # as the charts' ServiceMonitors say
                "static_configs": [{"targets": list(addresses), "labels": dict(labels)}],
            }
            for job, addresses in targets.items()
        ]
        settings = {"global": {"scrape_interval": "1s", "scrape_timeout": "1s"}, "scrape_configs": jobs}
        (folder / "prometheus.yml").write_text(yaml.safe_dump(settings))
        port = free_port()
        self.address = f"http://{LOOPBACK}:{port}"
        command = [
            str(prometheus_folder() / "prometheus"),
            f"--config.file={folder}/prometheus.yml",
            f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address={LOOPBACK}:{port}",
            "--log.level=warn",
        ]
        self.process = Process("prometheus", command, folder, {})

    def up(self) -> Prometheus:
        """Return once every target was scraped."""
        self.process.start()
        wait_until("Prometheus has scraped all", self._has_scraped_all, PATIENCE_SECONDS)
        return self

    def stop(self) -> None:
        self.process.stop()

    def query(self, text: str) -> list[dict[str, Any]]:
        """What an instant query gives. Raises `urllib.error.HTTPError` for what is no query."""
        with urlopen(f"{self.address}/api/v1/query?{urlencode({'query': text})}", timeout=30) as answer:
            return list(json.load(answer)["data"]["result"])

    def _has_scraped_all(self) -> bool:
        assert self.process.alive, self.process.last_lines()
        try:
            found = self.query("up")
        except OSError:
            return False
        return bool(found) and all(one["value"][1] == "1" for one in found)
