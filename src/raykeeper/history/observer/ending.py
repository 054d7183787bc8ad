"""Whether and how a cluster's session ended, by what is seen of the cluster. Pure.

Nothing here concludes from absence alone: a cluster that was never seen has no ending.
"""

from __future__ import annotations

from typing import Final

from raykeeper.history.observer.roster import Sight
from raykeeper.layout.records import CLUSTER_DELETED, CLUSTER_SUSPENDED, HEAD_LOST

STUCK_SECONDS: Final = 300.0
"""How long a head is waited for after its cluster is gone. Its collector beats until the end of its grace period, and
no beat must come after the closing; but a pod of a lost node may hang for ever."""
LATE_SECONDS: Final = 300.0
"""How long after a cluster's end sessions are still looked for: a collector may only now get through to the store."""


def ending_of(sight: Sight, *, gone_seconds: float) -> str | None:
    """Why the session of a cluster that was seen alive is over; None while it is not, or not for sure."""
    if not sight.is_there:
        return CLUSTER_DELETED if not sight.has_living_head or gone_seconds >= STUCK_SECONDS else None
    # One that is being deleted may lose its head first; its end is near and says more.
    if sight.has_living_head or not sight.had_head or sight.is_being_deleted:
        return None
    return CLUSTER_SUSPENDED if sight.is_suspended else HEAD_LOST
