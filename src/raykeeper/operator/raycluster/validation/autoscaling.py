"""Rules about Ray's autoscaler and what only its second version can do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from raykeeper.api.podtemplates import pod_spec
from raykeeper.api.versions import GROUP_PRIORITY, parse_version
from raykeeper.operator.raycluster.validation.candidate import Candidate
from raykeeper.operator.shared.features import (
    AUTOSCALER_V2_ENV,
    chosen_autoscaler,
    is_autoscaled,
    is_autoscaler_v2,
    is_autoscaler_v2_in_env,
)
from raykeeper.operator.shared.violations import Violation, has_value, is_set

START_COMMAND_ENV: Final = "KUBERAY_GEN_AUTOSCALER_START_CMD"
NO_RESTART: Final = (None, "", "Never")


def idle_timeouts_of_groups_need_v2(candidate: Candidate) -> Iterator[Violation]:
    for path, group in candidate.workers:
        seconds = group.idle_timeout_seconds
        if seconds is None:
            continue
        if seconds < 0:
            yield has_value(f"{path}.idleTimeoutSeconds", seconds, "use 0 or more")
        if not is_autoscaler_v2(candidate.spec):
            yield has_value(f"{path}.idleTimeoutSeconds", seconds, _needs_v2(candidate))


def priorities_of_groups_need_v2(candidate: Candidate) -> Iterator[Violation]:
    version = parse_version(candidate.spec.ray_version)
    for path, group in candidate.workers:
        if group.priority == 0:
            continue
        if version is None or version < GROUP_PRIORITY:
            cure = f"it needs Ray {GROUP_PRIORITY}; say in {candidate.path}.rayVersion which one the images have"
            yield has_value(f"{path}.priority", group.priority, cure)
        if not is_autoscaler_v2(candidate.spec):
            yield has_value(f"{path}.priority", group.priority, _needs_v2(candidate))


def _needs_v2(candidate: Candidate) -> str:
    return f"it needs {candidate.path}.autoscalerOptions.version: v2"


def the_autoscaler_is_chosen_once(candidate: Candidate) -> Iterator[Violation]:
    head = candidate.head
    if not is_autoscaled(candidate.spec) and is_autoscaler_v2_in_env(candidate.spec):
        cure = f"remove it, or set {candidate.path}.enableInTreeAutoscaling: true"
        yield is_set(f"{head.container_path}.env[{AUTOSCALER_V2_ENV}]", cure)
    if is_autoscaled(candidate.spec) and chosen_autoscaler(candidate.spec):
        yield from head.forbid_env(AUTOSCALER_V2_ENV, f"{candidate.path}.autoscalerOptions.version says it already")


def autoscaler_v2_needs_pods_that_stay_dead(candidate: Candidate) -> Iterator[Violation]:
    """It tells its nodes apart by pod; one that comes back to life under the same name confuses it."""
    if not is_autoscaled(candidate.spec) or chosen_autoscaler(candidate.spec) != "v2":
        return
    for group in candidate.groups:
        policy = pod_spec(group.spec.template).get("restartPolicy")
        if policy not in NO_RESTART:
            yield has_value(
                f"{group.pod_path}.restartPolicy", policy, "with the autoscaler v2 leave it out, or use Never"
            )


def autoscaler_options_are_possible(candidate: Candidate) -> Iterator[Violation]:
    options = candidate.spec.autoscaler_options
    if options is None:
        return
    path = f"{candidate.path}.autoscalerOptions"
    if options.idle_timeout_seconds is not None and options.idle_timeout_seconds < 0:
        yield has_value(f"{path}.idleTimeoutSeconds", options.idle_timeout_seconds, "use 0 or more")
    if any(entry.get("name") == START_COMMAND_ENV for entry in options.env):
        yield is_set(f"{path}.env[{START_COMMAND_ENV}]", "remove it, the operator writes it")
