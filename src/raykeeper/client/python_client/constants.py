"""Names that scripts import."""

import logging

GROUP = "ray.io"
CLUSTER_VERSION = "v1"
JOB_VERSION = "v1"
CLUSTER_PLURAL = "rayclusters"
JOB_PLURAL = "rayjobs"
CLUSTER_KIND = "RayCluster"
JOB_KIND = "RayJob"
LOGLEVEL = logging.INFO


def say_as_kuberay_does() -> None:
    """Lines of the standard library's log at INFO, unless the script has set up its own."""
    logging.basicConfig(format="%(asctime)s %(message)s", level=LOGLEVEL)
