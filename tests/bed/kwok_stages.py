"""What kwok does to the nodes and pods it plays, as its own configuration objects. Pure data.

Pods behave by annotation:
    bed/hold       stays Pending: scheduled, never started
    bed/delay-ms   milliseconds until it runs and is ready
    bed/unready    runs, and never becomes ready
    bed/fail       fails with exit code 1 once it ran
    bed/run        a Job's pod that goes on instead of completing
    bed/stuck      hangs in Terminating once it is deleted
Taking `bed/hold` or `bed/stuck` away from a pod lets it go on.
"""

from __future__ import annotations

from typing import Any

import yaml

Stage = dict[str, Any]

RUNNING_TO_ENDED_MILLISECONDS = 500  # long enough for a watcher to see the pod running

_NOT_DELETED = {"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"}
_DELAY = '.metadata.annotations["bed/delay-ms"] | if . then . + "ms" else null end'

_NODE_STATUS = """
{{ $now := Now | Quote }}
phase: Running
addresses:
- {type: InternalIP, address: 127.0.0.1}
- {type: Hostname, address: {{ .metadata.name | Quote }}}
conditions:
{{ range NodeConditions }}
- type: {{ .type | Quote }}
  status: {{ .status | Quote }}
  reason: {{ .reason | Quote }}
  message: {{ .message | Quote }}
  lastHeartbeatTime: {{ $now }}
  lastTransitionTime: {{ $now }}
{{ end }}
"""

_RUNNING = """
{{ $now := Now | Quote }}
phase: Running
startTime: {{ $now }}
conditions:
- {type: PodReadyToStartContainers, status: "True", lastTransitionTime: {{ $now }}}
- {type: Initialized, status: "True", lastTransitionTime: {{ $now }}}
- {type: ContainersReady, status: <ready>, lastTransitionTime: {{ $now }}}
- {type: Ready, status: <ready>, lastTransitionTime: {{ $now }}}
{{ range .spec.readinessGates }}
- {type: {{ .conditionType | Quote }}, status: "True", lastTransitionTime: {{ $now }}}
{{ end }}
"""

_ENDED = """
{{ $now := Now | Quote }}
phase: <phase>
conditions:
- {type: ContainersReady, status: "False", reason: PodCompleted, lastTransitionTime: {{ $now }}}
- {type: Ready, status: "False", reason: PodCompleted, lastTransitionTime: {{ $now }}}
"""

_TERMINATED = "{terminated: {exitCode: <exit_code>, reason: <reason>, startedAt: {{ $now }}, finishedAt: {{ $now }}}}"

_CONTAINERS = """
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  restartCount: 0
  ready: <ready>
  started: <started>
  state: <state>
{{ end }}
"""

_POD_ADDRESSES = """
{{ with NodeIPsWith .spec.nodeName }}
hostIP: {{ index . 0 | Quote }}
{{ end }}
{{ $uid := or .metadata.uid "" }}
{{ with PodIPsWith .spec.nodeName (or .spec.hostNetwork false) $uid .metadata.name .metadata.namespace }}
podIP: {{ index . 0 | Quote }}
podIPs: [{ip: {{ index . 0 | Quote }}}]
{{ end }}
"""

_INIT_CONTAINERS = """
initContainerStatuses:
{{ range .spec.initContainers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  restartCount: 0
  ready: true
  {{ if eq .restartPolicy "Always" }}
  started: true
  state: {running: {startedAt: {{ $now }}}}
  {{ else }}
  state: {terminated: {exitCode: 0, reason: Completed, startedAt: {{ $now }}, finishedAt: {{ $now }}}}
  {{ end }}
{{ end }}
"""


def kwok_configuration() -> str:
    """The file that kwok reads: options first, then every stage."""
    options = {"podPlayStageParallelism": 16, "nodePlayStageParallelism": 4}
    # Given any options, kwok takes those not named as 0, and exits over a lease parallelism of 0.
    options["nodeLeaseParallelism"] = 4
    head = {
        "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
        "kind": "KwokConfiguration",
        "metadata": {"name": "kwok"},
        "options": options,
    }
    return str(yaml.safe_dump_all([head, *stages()], sort_keys=False))


def stages() -> list[Stage]:
    """Every stage; their selectors exclude one another, so that a pod has one next step at most."""
    ended = {"durationMilliseconds": RUNNING_TO_ENDED_MILLISECONDS}
    of_a_job = {"key": ".metadata.ownerReferences.[].kind", "operator": "In", "values": ["Job"]}
    ready = [_NOT_DELETED, _phase("Pending"), _lacks("bed/hold"), _lacks("bed/unready")]
    unready = [_NOT_DELETED, _phase("Pending"), _lacks("bed/hold"), _has("bed/unready")]
    complete = [_NOT_DELETED, _phase("Running"), of_a_job, _lacks("bed/fail"), _lacks("bed/run")]
    fail = [_NOT_DELETED, _phase("Running"), _has("bed/fail")]
    delete = [{"key": ".metadata.deletionTimestamp", "operator": "Exists"}, _lacks("bed/stuck")]
    delay = {"durationMilliseconds": 0, "durationFrom": {"expressionFrom": _DELAY}}
    return [
        _node_stage(),
        _stage("pod-ready", "Pod", ready, {"statusTemplate": _running(ready=True)}, delay),
        _stage("pod-unready", "Pod", unready, {"statusTemplate": _running(ready=False)}, delay),
        _stage("pod-complete", "Pod", complete, {"statusTemplate": _ended("Succeeded", 0, "Completed")}, ended),
        _stage("pod-fail", "Pod", fail, {"statusTemplate": _ended("Failed", 1, "Error")}, ended),
        _stage("pod-delete", "Pod", delete, {"delete": True}),
    ]


def _node_stage() -> Stage:
    not_ready = {
        "key": '.status.conditions.[] | select(.type == "Ready") | .status',
        "operator": "NotIn",
        "values": ["True"],
    }
    return _stage("node-ready", "Node", [not_ready], {"statusTemplate": _NODE_STATUS})


def _stage(
    name: str, kind: str, selector: list[dict[str, Any]], step: dict[str, Any], delay: dict[str, Any] | None = None
) -> Stage:
    spec: dict[str, Any] = {
        "resourceRef": {"apiGroup": "v1", "kind": kind},
        "selector": {"matchExpressions": selector},
        "next": step,
    }
    if delay is not None:
        spec["delay"] = delay
    return {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Stage", "metadata": {"name": name}, "spec": spec}


def _running(*, ready: bool) -> str:
    containers = _filled(_CONTAINERS, state="{running: {startedAt: {{ $now }}}}", ready=ready, started=True)
    return _filled(_RUNNING, ready=f'"{ready}"') + _INIT_CONTAINERS + containers + _POD_ADDRESSES


def _ended(phase: str, exit_code: int, reason: str) -> str:
    state = _filled(_TERMINATED, exit_code=exit_code, reason=reason)
    return _filled(_ENDED, phase=phase) + _filled(_CONTAINERS, state=state, ready=False, started=False)


def _filled(template: str, **values: object) -> str:
    """The template with each `<name>` replaced; braces and dollars are Go's and stay."""
    for name, value in values.items():
        template = template.replace(f"<{name}>", str(value).lower() if isinstance(value, bool) else str(value))
    return template


def _phase(phase: str) -> dict[str, Any]:
    return {"key": ".status.phase", "operator": "In", "values": [phase]}


def _has(annotation: str) -> dict[str, Any]:
    return {"key": f'.metadata.annotations["{annotation}"]', "operator": "Exists"}


def _lacks(annotation: str) -> dict[str, Any]:
    return _has(annotation) | {"operator": "DoesNotExist"}
