"""What the user said they supply. It is looked for before a head pod is made, which would wait for it in vain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from raykeeper.api.meta import Resource
from raykeeper.api.raycluster import RayCluster
from raykeeper.kube.resources import PERSISTENT_VOLUME_CLAIMS, SERVICE_ACCOUNTS
from raykeeper.operator.raycluster.children.rbac import users_service_account
from raykeeper.operator.raycluster.children.storage import users_claim
from raykeeper.operator.raycluster.features import gcs_backend, is_autoscaled


@dataclass(frozen=True)
class Requirement:
    """An object that must be there, and what is said where it is not."""

    resource: Resource[Any]
    name: str
    reason: str
    message: str
    is_vital: bool
    """Whether no pod is made without it."""


def requirements(cluster: RayCluster) -> Iterator[Requirement]:
    """The ServiceAccount and the claim that the spec names, where it does."""
    account = users_service_account(cluster)
    if is_autoscaled(cluster.spec) and account:
        sentence = f"the autoscaler is to run as the ServiceAccount {account}, which is not there: create it"
        yield Requirement(SERVICE_ACCOUNTS, account, "AutoscalerServiceAccountNotFound", sentence, is_vital=True)
    claim = users_claim(cluster)
    if gcs_backend(cluster.spec, cluster.metadata.annotations) == "rocksdb" and claim:
        sentence = f"the GCS is to keep its state in the claim {claim}, which is not there: create it"
        yield Requirement(PERSISTENT_VOLUME_CLAIMS, claim, "FailedToCreatePVC", sentence, is_vital=False)
