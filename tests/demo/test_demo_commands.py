"""The programs of a demo meet each other, and nothing else."""

from __future__ import annotations

import ipaddress
import re
import sys
from pathlib import Path

import pytest

from raykeeper.collector.sources import read_settings as read_collector_settings
from raykeeper.demo.commands import (
    Places,
    Ports,
    base_environment,
    collector_command,
    history_command,
    ray_command,
    ray_environment,
    token_environment,
)
from raykeeper.demo.ports import free_ports
from raykeeper.demo.rayinstall import PINS, RayInstall, find_ray, install_commands, look_for_ray, parse_release
from raykeeper.demo.screen import Screen
from raykeeper.demo.settings import RAY_VERSION, cache_folder, default_folder
from raykeeper.errors import Misconfigured
from raykeeper.history.sources import read_settings as read_history_settings

PLACES = Places(Path("/store with space"), Path("/tmp/rk-demo-abcdefgh"))
PORTS = Ports(history=1, events=2, dashboard=3, gcs=4, agent=5, metrics=6, client=7)
RAY = RayInstall(Path("/env/bin/python"), "2.60.0", Path("/env/lib/ray"))
RAYKEEPER = 4  # words before the flags: python -m raykeeper.cli.main PROGRAM


def test_collector_and_history_server_use_the_same_store() -> None:
    collector = read_collector_settings(collector_command(PLACES, PORTS)[RAYKEEPER:], {})
    history = read_history_settings(history_command(PLACES, PORTS, RAY)[RAYKEEPER:], {})
    assert collector.bucket.url == history.store.url == "file:///store%20with%20space"


def test_ray_sends_its_events_to_the_collector_and_is_asked_by_it() -> None:
    collector = read_collector_settings(collector_command(PLACES, PORTS)[RAYKEEPER:], token_environment("t" * 32))
    environment = ray_environment(PORTS, RAY, {})
    export = environment["RAY_DASHBOARD_AGGREGATOR_AGENT_EVENTS_EXPORT_ADDR"]
    assert export == f"http://{collector.sink.hosts[0]}:{collector.sink.port}/v1/events"
    command = ray_command(PLACES, PORTS, RAY, is_small=True)
    assert f"--dashboard-port={collector.head.dashboard_address.rpartition(':')[2]}" in command
    assert f"--temp-dir={collector.node.ray_tmp_root}" in command
    assert collector.head.auth.token == "t" * 32


def test_everything_listens_on_the_loopback() -> None:
    collector = read_collector_settings(collector_command(PLACES, PORTS)[RAYKEEPER:], {})
    history = read_history_settings(history_command(PLACES, PORTS, RAY)[RAYKEEPER:], {})
    hosts = [*collector.sink.hosts, history.bind.rpartition(":")[0]]
    assert all(ipaddress.ip_address(host).is_loopback for host in hosts)
    assert collector.metrics_address == "0"
    command = ray_command(PLACES, PORTS, RAY, is_small=False)
    assert {"--node-ip-address=127.0.0.1", "--dashboard-host=127.0.0.1"} <= set(command)


def test_a_script_finds_the_python_that_has_ray() -> None:
    assert ray_environment(PORTS, RAY, {"PATH": "/usr/bin"})["PATH"] == "/env/bin:/usr/bin"


def test_the_users_own_script_gets_the_whole_machine() -> None:
    assert not [word for word in ray_command(PLACES, PORTS, RAY, is_small=False) if "cpus" in word]


def test_settings_for_other_clusters_and_stores_do_not_reach_a_demo() -> None:
    elsewhere = {
        "RAYKEEPER_STORE_URL": "s3://mine",
        "STORAGE_BACKEND": "s3",
        "RAY_ADDRESS": "ray://prod:10001",
        "RAY_AUTH_TOKEN_PATH": "/secret",
        "RAY_CLUSTER_NAME": "prod",
    }
    kept = base_environment({**elsewhere, "HOME": "/home/me", "NO_PROXY": "intern"})
    assert not elsewhere.keys() & kept.keys()
    assert kept["HOME"] == "/home/me"
    assert kept["no_proxy"] == kept["NO_PROXY"] == "intern,127.0.0.1,localhost"


def test_free_ports_are_all_different() -> None:
    assert len(set(free_ports(50))) == 50


def test_a_ray_that_cannot_tell_everything_is_not_used() -> None:
    assert "too old" in RayInstall(Path("p"), "2.52.0", Path("r")).why_not
    assert "ray[default]" in RayInstall(Path("p"), "2.60.0", Path("r"), has_dashboard=False).why_not
    assert not RAY.why_not


@pytest.mark.parametrize(
    ("version", "release"), [("2.60.0", (2, 60, 0)), ("3.0.0.dev0", (3, 0, 0)), ("2.54.0rc1", (2, 54)), ("main", ())]
)
def test_a_release_is_the_leading_numbers_of_a_version(version: str, release: tuple[int, ...]) -> None:
    assert parse_release(version) == release


def test_a_python_without_ray_is_refused_by_name(tmp_path: Path) -> None:
    assert look_for_ray(tmp_path / "missing") is None
    with pytest.raises(Misconfigured, match=r"^--ray-python=.*missing.* cannot be used: name the Python"):
        find_ray(tmp_path / "missing", Screen())


def test_a_folder_called_ray_is_not_taken_for_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ray").mkdir()
    monkeypatch.chdir(tmp_path)
    found = look_for_ray(Path(sys.executable))
    assert found is None or not found.package.is_relative_to(tmp_path)


def test_folders_follow_the_users_wishes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in ("XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_folder() == tmp_path / ".local/share/raykeeper/demo"
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative is not allowed")
    assert default_folder() == Path("/data/raykeeper/demo")
    assert cache_folder() == tmp_path / ".cache/raykeeper-demo"


def test_ray_is_installed_by_hashes_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "uv").touch(mode=0o755)
    for path in (str(tmp_path), ""):
        monkeypatch.setenv("PATH", path)
        monkeypatch.setattr(sys, "executable", str(tmp_path / "elsewhere" / "python"))
        installs = [command for command in install_commands(tmp_path / "env") if "install" in command]
        assert [command[-3:] for command in installs] == [["--require-hashes", "-r", str(PINS)]]


def test_every_package_of_ray_is_pinned_with_hashes() -> None:
    text = PINS.read_text()
    packages = re.split(r"^(?=\w)", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE), flags=re.MULTILINE)[1:]
    assert f"ray=={RAY_VERSION}" in text
    assert len(packages) > 30
    assert [one.splitlines()[0] for one in packages if "==" not in one or "--hash=sha256:" not in one] == []
    assert "://" not in text
