"""The environment variables that the operator reads, under KubeRay's names. Pure: the environment is an argument."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from raykeeper.errors import Misconfigured
from raykeeper.operator.values import parse_integer

VARIABLES = {
    "CLUSTER_DOMAIN": "DNS suffix of Services; default `cluster.local`.",
    "DELETE_RAYJOB_CR_AFTER_JOB_FINISHES": "`true` deletes a finished RayJob together with its cluster.",
    "ENABLE_DETERMINISTIC_HEAD_POD_NAME": "`true` names head pods after their cluster, without a random end.",
    "ENABLE_GCS_FT_REDIS_CLEANUP": "`false` leaves the data of deleted clusters in Redis.",
    "ENABLE_INIT_CONTAINER_INJECTION": "`false` leaves out the init container in which workers wait for the GCS.",
    "ENABLE_LOGIN_SHELL": "`true` starts Ray in a login shell.",
    "ENABLE_PROBES_INJECTION": "`false` leaves Ray containers without probes.",
    "ENABLE_RANDOM_POD_DELETE": "`true` lets groups shrink though the autoscaler did not say which pod goes.",
    "ENABLE_RAY_HEAD_CLUSTER_IP_SERVICE": "`true` gives the head Service a cluster IP.",
    "ENABLE_WEBHOOKS": "`true` asks for validating webhooks, which this version does not have: it stops.",
    "ENABLE_ZERO_DOWNTIME": "`false` lets a RayService that does not say otherwise change in place.",
    "RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV": "Seconds between two looks at a RayCluster; default 300.",
    "RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS": (
        "Seconds until a finished job must be seen as such; default 300."
    ),
    "RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS": "Seconds a head may be silent before its job failed; default 300.",
    "RAYKEEPER_LOG_LEVEL": "Log level where `--zap-log-level` is not given: debug, info, warning or error.",
    "USE_INGRESS_ON_OPENSHIFT": "`true` makes an Ingress also where OpenShift's Routes are served.",
}


@dataclass(frozen=True)
class Variables:
    """Typed reading of some environment; an empty variable counts as not set, as in KubeRay."""

    environment: Mapping[str, str]

    def text(self, name: str) -> str | None:
        return self.environment.get(name) or None

    def switch(self, name: str) -> bool | None:
        """`true` or `false` in any case. KubeRay takes anything else for the default; here it is refused by name."""
        text = self.text(name)
        if text is None:
            return None
        if text.lower() not in ("true", "false"):
            raise Misconfigured(name, text, "use true or false")
        return text.lower() == "true"

    def seconds(self, name: str, default: int) -> int:
        text = self.text(name)
        if text is None:
            return default
        number = parse_integer(name, text)
        if number < 1:
            raise Misconfigured(name, text, "use a number of seconds above 0")
        return number

    def is_on(self, name: str) -> bool:
        """A switch that is off unless it is set."""
        return self.switch(name) is True

    def is_not_off(self, name: str) -> bool:
        """A switch that is on unless it is set to false."""
        return self.switch(name) is not False
