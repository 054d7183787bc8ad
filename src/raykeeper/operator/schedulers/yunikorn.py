"""YuniKorn: no objects, but labels that name the application and its queue, and the gang in an annotation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from raykeeper.api.meta import JSON
from raykeeper.api.names import clip_label
from raykeeper.api.podtemplates import pod_spec
from raykeeper.operator.schedulers.gang import Gang, Group
from raykeeper.operator.schedulers.interface import SUBMITTER_GROUP, THE_CLUSTER, dressed, wants_gang
from raykeeper.operator.schedulers.none import NoScheduler
from raykeeper.operator.shared.totals import requested

APPLICATION: Final = "applicationId"
_PASSED_ON: Final = {"yunikorn.apache.org/app-id": APPLICATION, "yunikorn.apache.org/queue": "queue"}
TASK_GROUPS: Final = "yunikorn.apache.org/task-groups"
TASK_GROUP_NAME: Final = "yunikorn.apache.org/task-group-name"
_PLACED_BY: Final = ("nodeSelector", "tolerations", "affinity", "topologySpreadConstraints")
"""Fields of a pod that its placeholder must have too."""


class YuniKorn(NoScheduler):
    """Pods are a gang where the owner asks for it."""

    name = "yunikorn"

    def dress(self, gang: Gang, item: JSON, group: str) -> JSON:
        annotations = _annotations(gang, group) if wants_gang(gang.owner) else {}
        # YuniKorn takes pods that name no application for one in each namespace, and the first gang for that of all.
        application = {APPLICATION: _application(gang)} if annotations else {}
        marks = application | gang.labels(_PASSED_ON)
        return dressed(item, marks, annotations, "" if group == THE_CLUSTER else self.name)


def _application(gang: Gang) -> str:
    return clip_label(f"ray-{gang.owner.key.namespace}-{gang.app_name}")


def _annotations(gang: Gang, group: str) -> dict[str, str]:
    """The whole gang, and which part of it this is. A RayCluster has the annotation from its RayJob."""
    text = gang.owner.annotations.get(TASK_GROUPS) or _task_groups(gang)
    if not text:
        return {}
    is_member = any(one.get("name") == group for one in _parsed(text))
    return {TASK_GROUPS: text} | ({TASK_GROUP_NAME: group} if is_member else {})


def _parsed(text: str) -> list[JSON]:
    try:
        return msgspec.json.decode(text, type=list[dict[str, Any]])
    except msgspec.MsgspecError:
        return []


def _task_groups(gang: Gang) -> str:
    """As JSON; empty for a job on another's cluster, which starts one pod alone."""
    if gang.spec is None:
        return ""
    groups = list(gang.groups)
    if gang.submitter is not None:
        groups.append(Group(SUBMITTER_GROUP, gang.submitter, 1))
    return msgspec.json.encode(list(_entries(groups))).decode()


def _entries(groups: list[Group]) -> Iterator[JSON]:
    for group in groups:
        if not group.members:  # YuniKorn refuses the whole list for one group without members
            continue
        spec = pod_spec(group.template)
        resources = {name: str(total) for name, total in requested([(group.template, 1)]).items()}
        entry: JSON = {"name": group.name, "minMember": group.members, "minResource": resources}
        yield entry | {field: spec[field] for field in _PLACED_BY if spec.get(field)}
