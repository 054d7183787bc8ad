"""What the containers ask for that the operator puts beside Ray: schedulers reserve it as well. Pure."""

from __future__ import annotations

from typing import Final

from raykeeper.api.meta import JSON
from raykeeper.api.rayclusteroptions import AutoscalerOptions, CollectorOptions

AUTOSCALER_RESOURCES: Final = {"cpu": "500m", "memory": "512Mi"}
COLLECTOR_RESOURCES: Final = {
    "requests": {"cpu": "50m", "memory": "64Mi"},
    "limits": {"cpu": "200m", "memory": "256Mi"},
}


def autoscaler_resources(options: AutoscalerOptions | None) -> JSON:
    """Of the autoscaler beside the head."""
    if options is None or options.resources is None:
        return {"limits": AUTOSCALER_RESOURCES, "requests": AUTOSCALER_RESOURCES}
    return options.resources


def collector_resources(options: CollectorOptions) -> JSON:
    """Of the collector in each Ray pod."""
    return COLLECTOR_RESOURCES if options.resources is None else options.resources
