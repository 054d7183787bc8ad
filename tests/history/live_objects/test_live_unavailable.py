"""An API server that does not answer costs the live pages, and nothing else."""

from __future__ import annotations

from pathlib import Path

from raykeeper.history.live_objects.kubernetes import kubernetes_objects
from raykeeper.history.live_objects.model import LiveProblem
from raykeeper.history.settings import KubernetesSettings

NOBODY = (
    "{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: x}}],"
    " clusters: [{name: x, cluster: {server: 'http://127.0.0.1:9'}}]}"
)


async def test_an_api_server_that_does_not_answer_is_a_problem_in_words(tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    config.write_text(NOBODY)
    async with kubernetes_objects(KubernetesSettings("off", config, ("team-a",)), {}) as objects:
        listed = await objects.all()
        found = await objects.find("RayCluster", "team-a", "train")
    assert {problem.cause for problem in listed.problems} == {"unavailable"}
    assert not listed.is_complete
    assert isinstance(found, LiveProblem)
    assert "did not answer" in found.words
