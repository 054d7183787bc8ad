"""What the user said they supply. It is looked for before a head pod is made, which would wait for it in vain."""

from __future__ import annotations

from collections.abc import Iterator

from raykeeper.api.raycluster import RayCluster
from raykeeper.kube.resources import PERSISTENT_VOLUME_CLAIMS, SECRETS, SERVICE_ACCOUNTS
from raykeeper.operator.raycluster.children.rbac import users_service_account
from raykeeper.operator.raycluster.children.storage import users_claim
from raykeeper.operator.shared.children.apply import Requirement
from raykeeper.operator.shared.features import gcs_backend, is_autoscaled
from raykeeper.operator.shared.history import History


def requirements(cluster: RayCluster, history: History) -> Iterator[Requirement]:
    """The ServiceAccount and the claim that the spec names, where it does, and the Secret that collectors read."""
    account = users_service_account(cluster)
    if is_autoscaled(cluster.spec) and account and history.account_name(cluster) is None:
        sentence = f"the autoscaler is to run as the ServiceAccount {account}, which is not there: create it"
        yield Requirement(SERVICE_ACCOUNTS, account, "AutoscalerServiceAccountNotFound", sentence, is_vital=True)
    claim = users_claim(cluster)
    if gcs_backend(cluster.spec, cluster.metadata.annotations) == "rocksdb" and claim:
        sentence = f"the GCS is to keep its state in the claim {claim}, which is not there: create it"
        yield Requirement(PERSISTENT_VOLUME_CLAIMS, claim, "FailedToCreatePVC", sentence, is_vital=False)
    secret = history.settings.secret_name
    if secret and history.is_kept(cluster.spec, cluster.metadata.annotations):
        sentence = f"collectors are to read the Secret {secret}, which is not there: create it, or no history is stored"
        yield Requirement(SECRETS, secret, "HistorySecretNotFound", sentence, is_vital=False)
