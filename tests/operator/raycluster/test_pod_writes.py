"""What is done to pods is told under the reasons that KubeRay's users watch for."""

from __future__ import annotations

import pytest

from raykeeper.operator.raycluster.actions import CreateHead, CreateWorker, DeletePod, Why
from raykeeper.operator.raycluster.ledger import pod_write_of
from support.operator_raycluster import a_head, a_worker


@pytest.mark.parametrize(
    ("action", "done", "refused", "failure"),
    [
        (CreateHead(), "CreatedHeadPod", "FailedToCreateHeadPod", "FailedCreateHeadPod"),
        (CreateWorker("small", None), "CreatedWorkerPod", "FailedToCreateWorkerPod", "FailedCreateWorkerPod"),
        (DeletePod(a_head(), Why.ENDED), "DeletedHeadPod", "FailedToDeleteHeadPod", "FailedDeleteHeadPod"),
        (DeletePod(a_worker("a"), Why.ASKED), "DeletedWorkerPod", "FailedToDeleteWorkerPod", "FailedDeleteWorkerPod"),
        (
            DeletePod(a_worker("a"), Why.GROUP_SUSPENDED),
            "DeletedWorkerPod",
            "FailedToDeleteWorkerPodCollection",
            "FailedDeleteWorkerPod",
        ),
        (DeletePod(a_head(), Why.SUSPENDED), "DeletedPod", "FailedToDeletePodCollection", "FailedDeleteAllPods"),
        (DeletePod(a_worker("a"), Why.SUSPENDED), "DeletedPod", "FailedToDeletePodCollection", "FailedDeleteAllPods"),
        (DeletePod(a_worker("a"), Why.RECREATE), "DeletedPod", "FailedToDeletePodCollection", "FailedDeleteAllPods"),
    ],
)
def test_each_deed_has_the_reasons_that_kuberay_gives_it(
    action: CreateHead | CreateWorker | DeletePod, done: str, refused: str, failure: str
) -> None:
    deed = pod_write_of(action)
    assert (deed.done, deed.refused, deed.failure) == (done, refused, failure)
