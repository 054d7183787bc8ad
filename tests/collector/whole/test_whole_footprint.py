"""What a running collector has in memory: its own, and nothing of other programs or of the command line's library."""

from __future__ import annotations

from pathlib import Path

from support.collector_processes import CollectorProcess, ended

FOREIGN = ("pydantic", "duckdb", "aiohttp", "grpc", "starlette", "yaml")
"""Each costs from 3 to 40 MB of the 56 that an idle collector may take; all have parts in C, which the maps show."""


def test_a_running_collector_has_loaded_nothing_heavy_that_it_does_not_use(tmp_path: Path) -> None:
    flags = ["--role=head", "--ray-cluster-name=demo", f"--store-url=file://{tmp_path}/store", "--events-port=0"]
    collector = CollectorProcess(
        tmp_path / "collector.log",
        [*flags, f"--ray-tmp-root={tmp_path}", "--metrics-addr=127.0.0.1:0"],
        {"RAY_DASHBOARD_ADDRESS": "http://127.0.0.1:9"},
    )
    with ended(collector):
        collector.start().wait_for("dashboard does not answer; waiting for it")
        maps = Path(f"/proc/{collector.pid}/maps").read_text()
        assert "msgspec" in maps
        assert [name for name in FOREIGN if f"/{name}" in maps] == []
        assert collector.end() == 0
