"""From what Ray's agent and the pod say to one row. Pure.

CPU, memory and GPUs are the agent's word: it sees the cgroup of Ray's container, the collector only its own. CPU is a
mean over the five seconds before the agent last looked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from raykeeper.collector.ray_metrics import RayMetrics, Reading
from raykeeper.collector.samples.machine import MachineFigures
from raykeeper.layout.samples import MAX_GPUS, MAX_NAME, MAX_VALUE, GpuSample, Sample, rounded, slot_of

MIB = 1 << 20
_MEMORY_DIGITS, _GPU_DIGITS, _NETWORK_DIGITS = 4, 3, 3
_MAX_INDEX = 1023
_STORE = "object_store_memory"


def to_sample(at: float, session: str, metrics: RayMetrics | None, machine: MachineFigures) -> Sample:
    """The row of the ten seconds that a moment is in. What is no usable number is None."""
    readings = [one for one in metrics.readings if _is_of(one, session)] if metrics else []
    values = {one.name: one.value for one in readings if "GpuIndex" not in one.labels}
    cpus, utilization = _number(values.get("node_cpu_count")), _number(values.get("node_cpu_utilization"))
    used, available = _resources(readings, "USED"), _resources(readings, "AVAILABLE")
    return Sample(
        at=slot_of(at),
        cpu=None if cpus is None or utilization is None else _whole(cpus * utilization),
        cpu_total=_hundredths(cpus),
        cpu_reserved=_hundredths(used.get("CPU")),
        gpu_reserved=_hundredths(used.get("GPU")),
        memory=_mib(values.get("node_mem_used"), _MEMORY_DIGITS),
        memory_total=_mib(values.get("node_mem_total")),
        object_store=_mib(used.get(_STORE), _MEMORY_DIGITS),
        object_store_total=_mib(used[_STORE] + available[_STORE]) if _STORE in used and _STORE in available else None,
        disk=_mib(machine.disk_bytes, _MEMORY_DIGITS),
        disk_total=_mib(machine.disk_total_bytes),
        received=_whole(machine.received_per_second, _NETWORK_DIGITS),
        sent=_whole(machine.sent_per_second, _NETWORK_DIGITS),
        gpus=_gpus(readings),
    )


def _is_of(reading: Reading, session: str) -> bool:
    """Whether it is of that session: at the usual port may be somebody else's Ray."""
    return reading.labels.get("SessionName", session) == session


def _resources(readings: Iterable[Reading], state: str) -> Mapping[str, float]:
    """Ray's own resources of this node by name."""
    found = [one for one in readings if one.name == "resources" and one.labels.get("State") == state]
    return {one.labels.get("Name", ""): one.value for one in found}


def _gpus(readings: Iterable[Reading]) -> tuple[GpuSample, ...]:
    by_gpu: dict[tuple[int, str], dict[str, float]] = {}
    for one in readings:
        index = one.labels.get("GpuIndex", "")
        if index.isascii() and index.isdigit() and int(index) <= _MAX_INDEX:
            identity = (int(index), one.labels.get("GpuDeviceName", "")[:MAX_NAME])
            by_gpu.setdefault(identity, {})[one.name] = one.value
    return tuple(_gpu(index, name, by_gpu[index, name]) for index, name in sorted(by_gpu)[:MAX_GPUS])


def _gpu(index: int, name: str, values: Mapping[str, float]) -> GpuSample:
    used, free = _number(values.get("node_gram_used")), _number(values.get("node_gram_available"))
    return GpuSample(
        index=index,
        name=name,
        used=_whole(values.get("node_gpus_utilization")),
        memory=_whole(used, _GPU_DIGITS),  # in MiB already
        memory_total=None if used is None or free is None else _whole(used + free),
    )


def _number(value: float | None) -> float | None:
    """What lies where such figures can be; NaN lies nowhere."""
    return value if value is not None and 0 <= value <= MAX_VALUE else None


def _whole(value: float | None, digits: int = 16) -> int | None:
    number = _number(value)
    return None if number is None else min(rounded(number, digits), MAX_VALUE)


def _hundredths(value: float | None) -> int | None:
    return _whole(None if value is None else value * 100)


def _mib(value: float | None, digits: int = 16) -> int | None:
    return _whole(None if value is None else value / MIB, digits)
