"""The ServiceAccount of pods whose history is kept by annotation, so that a cloud's role can trust their collectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from raykeeper.api.meta import JSON
from raykeeper.api.podtemplates import pod_spec
from raykeeper.api.raycluster import RayCluster
from raykeeper.operator.raycluster.children.labels import common_labels
from raykeeper.operator.raycluster.children.rbac import autoscaler_binding
from raykeeper.operator.shared.children.drift import Drift, Patch
from raykeeper.operator.shared.children.keys import ChildKey
from raykeeper.operator.shared.children.metadata import child_metadata, metadata_patch
from raykeeper.operator.shared.features import is_autoscaled
from raykeeper.operator.shared.history import History
from raykeeper.operator.shared.owner import Owner
from raykeeper.operator.shared.rrsa import account_annotations

DEFAULT_ACCOUNT: Final = "default"


def history_children(cluster: RayCluster, history: History, pull_secrets: Sequence[JSON]) -> Iterator[JSON]:
    """The account, and the autoscaler's rights for it, beside those of the account that an earlier head runs as."""
    name = history.account_name(cluster)
    if name is None:
        return
    annotations = account_annotations(history.settings)
    account: JSON = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": child_metadata(Owner.of(cluster), name, common_labels(cluster), annotations),
    }
    yield account | ({"imagePullSecrets": list(pull_secrets)} if pull_secrets else {})
    if is_autoscaled(cluster.spec):
        yield autoscaler_binding(cluster, name, account=name)


def history_keys(cluster: RayCluster, history: History) -> list[ChildKey]:
    """What must be there before pods can run as the account."""
    name = history.account_name(cluster)
    if name is None:
        return []
    binding = [ChildKey("RoleBinding", name)] if is_autoscaled(cluster.spec) else []
    return [ChildKey("ServiceAccount", name), *binding]


def replaced_accounts(cluster: RayCluster) -> list[str]:
    """The accounts that pods would run as without it; some pull images by Secrets that hang on these."""
    named = (pod_spec(template).get("serviceAccountName") for template in cluster.spec.templates)
    return list(dict.fromkeys(name or DEFAULT_ACCOUNT for name in named))


def account_drift(desired: JSON, actual: JSON) -> Drift:
    """Only annotations that came from us change, with the settings; accounts without any are used as they are."""
    annotations = metadata_patch(desired, actual).get("annotations")
    return Patch({"metadata": {"annotations": annotations}}) if annotations else None
