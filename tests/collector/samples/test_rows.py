"""One row out of what Ray's agent and the pod say: what is no usable number is nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
import zstandard

from raykeeper.collector.ray_metrics import RayMetrics, Reading, WantedLines, parse_metrics
from raykeeper.collector.samples.machine import Machine, MachineFigures, Traffic, parse_traffic
from raykeeper.collector.samples.rows import to_sample
from raykeeper.layout.samples import MAX_GPUS, Sample
from support.clocks import ManualClock

SESSION = "session_2026-11-17_15-46-54_054619_3192"
NOTHING = MachineFigures()
RECORDED = Path(__file__).parent / "recorded" / "ray-2.60.0-head.txt.zst"
NET_DEV = """Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier comp
    lo: 99999999    1    0    0    0     0          0         0 99999999    1    0    0    0     0       0          0
  eth0:    1000    10    0    0    0     0          0         0     2000    20    0    0    0     0       0          0
  net1:     100    10    0    0    0     0          0         0      200    20    0    0    0     0       0          0
docker0:    7777   10    0    0    0     0          0         0     7777    20    0    0    0     0       0          0
  torn:
"""


def readings(*values: tuple[str, float], **labels: str) -> RayMetrics:
    return RayMetrics(tuple(Reading(name, labels, value) for name, value in values), 100)


def test_utilisation_becomes_cpus() -> None:
    metrics = readings(("node_cpu_count", 8), ("node_cpu_utilization", 37.5))
    sample = to_sample(1_794_769_207.9, SESSION, metrics, NOTHING)
    assert (sample.at, sample.cpu, sample.cpu_total) == (1_794_769_200, 300, 800)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0, 1e300])
def test_what_is_no_usable_number_is_nothing(value: float) -> None:
    names = ("node_cpu_count", "node_cpu_utilization", "node_mem_used", "node_mem_total")
    sample = to_sample(0, SESSION, readings(*((name, value) for name in names)), NOTHING)
    assert sample == Sample(at=0)


def test_another_session_at_the_usual_port_is_not_taken_for_ours() -> None:
    metrics = readings(("node_mem_used", 1 << 30), SessionName="session_of_somebody_else")
    assert to_sample(0, SESSION, metrics, NOTHING).memory is None


def test_more_gpus_than_any_node_has_are_left_out() -> None:
    many = [Reading("node_gpus_utilization", {"GpuIndex": str(index)}, 5.0) for index in range(1000)]
    odd = [Reading("node_gpus_utilization", {"GpuIndex": index}, 5.0) for index in ("", "-1", "²", "99999999999")]
    sample = to_sample(0, SESSION, RayMetrics((*odd, *many), 1), NOTHING)
    assert len(sample.gpus) == MAX_GPUS


def test_the_pods_own_figures_are_taken_as_they_are() -> None:
    sample = to_sample(0, SESSION, None, MachineFigures(3 << 30, 9 << 30, 1234.5, 0.4))
    assert (sample.disk, sample.disk_total, sample.received, sample.sent) == (3072, 9216, 1230, 0)
    assert sample.cpu is None


def test_metrics_of_a_real_ray_are_understood() -> None:
    """Recorded while one task of one CPU was at work on a machine of two, beside others, with 50 MB in the store."""
    wanted = WantedLines()
    wanted.feed(zstandard.decompress(RECORDED.read_bytes(), 1 << 24))
    metrics = parse_metrics(wanted)
    session = next(one.labels["SessionName"] for one in metrics.readings)
    sample = to_sample(0, session, metrics, NOTHING)
    assert (sample.cpu, sample.cpu_total, sample.cpu_reserved, sample.object_store) == (200, 200, 100, 48)
    assert sample.memory is not None
    assert sample.memory_total is not None
    assert 3000 < sample.memory < sample.memory_total
    assert sample.object_store_total == 95


def test_only_interfaces_that_lead_elsewhere_are_counted() -> None:
    assert parse_traffic(NET_DEV.splitlines()) == Traffic(1100, 2200)


def test_speeds_are_those_since_the_look_before(tmp_path: Path) -> None:
    clock, file = ManualClock(), tmp_path / "dev"
    file.write_text(NET_DEV)
    machine = Machine(tmp_path, clock, file)
    assert machine.look().received_per_second is None
    file.write_text(NET_DEV.replace(" 1000 ", " 6000 "))
    clock.advance(10)
    assert machine.look().received_per_second == 500.0
    file.write_text("")
    clock.advance(10)
    assert machine.look().received_per_second is None


def test_the_disk_is_the_one_below_rays_folder(tmp_path: Path) -> None:
    figures = Machine(tmp_path, ManualClock()).look()
    assert figures.disk_bytes is not None
    assert figures.disk_total_bytes is not None
    assert 0 < figures.disk_bytes < figures.disk_total_bytes
    assert Machine(tmp_path / "none", ManualClock()).look().disk_bytes is None
