"""Every test may use the real servers of the bed, and golden files."""

from hypothesis import HealthCheck, settings

from fuzz.fuzzing import IS_SHORT

# How long an input takes says something about the machine, not about the code: CI's is slow and shared. The inputs are
# the same each time, so that what fails was broken by the change at hand; `make fuzz` looks for others.
settings.register_profile(
    "raykeeper", deadline=None, derandomize=IS_SHORT, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("raykeeper")

pytest_plugins = [
    "bed.fixtures",
    "bed.crds",
    "bed.schedulers",
    "bed.gateway_api",
    "bed.object_stores",
    "bed.redis",
    "bed.chromium",
    "bed.prometheus",
    "bed.node.fixtures",
    "e2e.fixtures",
    "support.golden",
]
