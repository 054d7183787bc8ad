"""The operator's environment variables under KubeRay's names. Cheap to import, since `--help` shows them."""

from __future__ import annotations

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
    "RAYKEEPER_COLLECTOR_IMAGE": "Image of collectors where `--history-collector-image` is not given.",
    "RAYKEEPER_HISTORY_URL": (
        "Where people open the history server where `--history-url` is not given; statuses link there."
    ),
    "RAYKEEPER_LOG_LEVEL": "Log level where `--zap-log-level` is not given: debug, info, warning or error.",
    "RAYKEEPER_SUBMITTER_IMAGE": (
        "Image with `/submitter` for RayJobs without a submitterPodTemplate; default is the image of their head."
    ),
    "USE_INGRESS_ON_OPENSHIFT": "`true` makes an Ingress also where OpenShift's Routes are served.",
}
