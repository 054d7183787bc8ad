"""Whether Kubernetes is observed. Cheap to import, unlike a client of it."""

from __future__ import annotations

from collections.abc import Mapping

from raykeeper.history.settings import KubernetesSettings
from raykeeper.kube.connect.incluster import SERVICE_ACCOUNT_FOLDER, is_given


def is_wanted(settings: KubernetesSettings, environment: Mapping[str, str]) -> bool:
    """Whether Kubernetes is observed: if it was said, or if there is one to be seen."""
    if settings.facts == "auto":
        return settings.kubeconfig is not None or is_given(environment, SERVICE_ACCOUNT_FOLDER)
    return settings.facts == "on"
