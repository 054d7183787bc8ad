"""The words in which a RayService says how it is. KubeRay's are interface: Kueue, Argo CD and scripts read them."""

from __future__ import annotations

from typing import Final

# Types of conditions
READY: Final = "Ready"
UPGRADE_IN_PROGRESS: Final = "UpgradeInProgress"
ROLLBACK_IN_PROGRESS: Final = "RollbackInProgress"
SUSPENDING: Final = "Suspending"
SUSPENDED: Final = "Suspended"
APPLICATIONS_HEALTHY: Final = "ServeApplicationsHealthy"
"""Ours: whether Serve runs every application, and else what it says about those that it does not run."""
GATEWAY_READY: Final = "GatewayReady"
"""Ours: whether the Gateway sends requests to the clusters as it should; there where one does."""
INVALID: Final = "RayServiceInvalid"
"""Ours: the spec was edited into something that cannot be worked on, while the service goes on as it was."""

# Reasons
INITIALIZING: Final = "Initializing"
INITIALIZING_TIMEOUT: Final = "InitializingTimeout"
ZERO_ENDPOINTS: Final = "ZeroServeEndpoints"
NONZERO_ENDPOINTS: Final = "NonZeroServeEndpoints"
BOTH_CLUSTERS: Final = "BothActivePendingClustersExist"
NO_PENDING: Final = "NoPendingCluster"
NO_ACTIVE: Final = "NoActiveCluster"
VALIDATION_FAILED: Final = "ValidationFailed"
SPEC_CHANGED: Final = "DesiredClusterSpecChanged"
UNHEALTHY: Final = "PendingClusterUnhealthy"
"""Ours: traffic goes back, or went back, since the new cluster did not work."""
SUSPEND_REQUESTED: Final = "SuspendRequested"
SUSPEND_IN_PROGRESS: Final = "SuspendInProgress"
SUSPEND_COMPLETE: Final = "SuspendComplete"
RESUMED: Final = "RayServiceResumed"

REPLACE_UNHEALTHY_AFTER: Final = "raykeeper.io/replace-unhealthy-after"
"""Annotation: how long applications may be broken before a new cluster takes over. Without it, for ever."""
BROKEN: Final = frozenset({"UNHEALTHY", "DEPLOY_FAILED"})
"""Serve's own words for an application that does not work."""

RUNNING: Final = "Running"
"""status.serviceStatus of a service that has endpoints."""
APPLICATION_RUNNING: Final = "RUNNING"
DEPLOYMENT_HEALTHY: Final = "HEALTHY"
"""Serve's own words for an application and a deployment that are as they should be."""


class UpgradeType:
    """spec.upgradeStrategy.type."""

    NEW_CLUSTER: Final = "NewCluster"
    INCREMENTAL: Final = "NewClusterWithIncrementalUpgrade"
    NONE: Final = "None"


UPGRADE_TYPES: Final = (UpgradeType.NEW_CLUSTER, UpgradeType.INCREMENTAL, UpgradeType.NONE)
