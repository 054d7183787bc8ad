"""The Configuration file is read strictly: what is wrong in it is named, and nothing in it is overlooked."""

from __future__ import annotations

from pathlib import Path

import pytest

from raykeeper.errors import Misconfigured
from raykeeper.operator.configuration import parse_configuration, read_configuration

HEADER = "apiVersion: config.ray.io/v1alpha1\nkind: Configuration\n"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "it must hold one Configuration of config.ray.io/v1alpha1"),
        ("- a", "it must hold one Configuration of config.ray.io/v1alpha1"),
        ("kind: Configuration", "Object missing required field `apiVersion`"),
        ("apiVersion: v1\nkind: Configuration", "Invalid enum value 'v1' - at `$.apiVersion`"),
        ("apiVersion: config.ray.io/v1alpha1\nkind: Pod", "Invalid enum value 'Pod' - at `$.kind`"),
        (HEADER + "metricAddr: :1", "Object contains unknown field `metricAddr`"),
        (HEADER + "featureGates: A=true", "Object contains unknown field `featureGates`"),
        (HEADER + "qps: fast", "Expected `float | null`, got `str` - at `$.qps`"),
        (HEADER + "burst: 1.5", "Expected `int | null`, got `float` - at `$.burst`"),
        (HEADER + "enableMetrics: 'true'", "Expected `bool | null`, got `str` - at `$.enableMetrics`"),
        (HEADER + "defaultPodLabels: {a: 1}", "Expected `str`, got `int` - at `$.defaultPodLabels[...]`"),
        (HEADER + "headSidecarContainers: [{image: x}]", "headSidecarContainers[0] has no name"),
        (HEADER + "workerSidecarContainers: [{name: a}, {}]", "workerSidecarContainers[1] has no name"),
        (HEADER + "defaultContainerEnvs: [{value: x}]", "defaultContainerEnvs[0] has no name"),
        (HEADER + "qps: 1\nqps: 2", "line 4: key 'qps' is there twice"),
        (HEADER + "qps: [1", "line 3: expected ',' or ']', but got '<stream end>'"),
        (HEADER + "---\n" + HEADER, "line 3: but found another document"),
        (HEADER + "qps: !!python/name:os.system", "line 3: could not determine a constructor for the tag"),
    ],
)
def test_a_wrong_file_is_refused_by_field_or_line(text: str, complaint: str, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(text)
    with pytest.raises(Misconfigured) as refusal:
        read_configuration(file)
    assert str(refusal.value).startswith(f"--config={str(file)!r} cannot be used: {complaint}")
    assert "\n" not in str(refusal.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"missing\.yaml' cannot be used: it cannot be read \(No such file"):
        read_configuration(tmp_path / "missing.yaml")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(Misconfigured, match="binary' cannot be used: it is not text"):
        read_configuration(tmp_path / "binary")


def test_json_and_null_are_fine_and_containers_stay_as_they_are() -> None:
    container = {"name": "log-shipper", "image": "shipper", "env": [{"name": "A", "value": "1"}]}
    read = parse_configuration(
        '{"apiVersion": "config.ray.io/v1alpha1", "kind": "Configuration", "qps": null, "burst": 7,'
        ' "headSidecarContainers": [{"name": "log-shipper", "image": "shipper", "env": [{"name": "A", "value": "1"}]}]}'
    )
    assert (read.qps, read.burst, read.head_sidecar_containers) == (None, 7, (container,))


def test_what_kuberays_chart_writes_into_the_config_map_is_understood() -> None:
    read = parse_configuration(
        HEADER
        + """\
enableLeaderElection: true
enableMetrics: true
reconcileConcurrency: 1
useKubernetesProxy: false
qps: 100
burst: 200
watchNamespace: "team-a,team-b"
logFile: "/logs/operator.log"
logStdoutEncoder: "json"
logFileEncoder: "console"
headSidecarContainers:
  - name: log-shipper
    image: shipper
defaultContainerEnvs:
  - name: RAY_COLOR_PREFIX
    value: "0"
defaultPodAnnotations:
  sidecar.istio.io/inject: "false"
"""
    )
    assert (read.qps, read.watch_namespace, read.log_file_encoder) == (100.0, "team-a,team-b", "console")
    assert read.default_pod_annotations == {"sidecar.istio.io/inject": "false"}
