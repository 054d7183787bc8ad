"""What failed is called by the name that its user knows, never by a function of Ray's own libraries."""

from __future__ import annotations

import pytest

from raykeeper.history.report.naming import called, phrase, ranks_in, short, trials_in


@pytest.mark.parametrize(
    ("function", "more", "words"),
    [
        ("parse", {}, "task parse"),
        ("main.<locals>.step", {}, "task step"),
        ("_map_task", {"name": "ReadRange->Map(parse)"}, "Ray Data operator ReadRange->Map(parse)"),
        ("_run", {"name": "nightly load"}, "task nightly load"),
        ("MapWorker(MapBatches(Scorer)).submit", {}, "Ray Data operator MapBatches(Scorer)"),
        (
            "_MapWorker.__init__",
            {"name": "MapWorker(MapBatches(Scorer)).__init__"},
            "Ray Data operator MapBatches(Scorer)",
        ),
        ("Trainer.step", {"class_name": "Trainer"}, "actor Trainer in Trainer.step"),
        (
            "Trainer.step",
            {"class_name": "Trainer", "actor_name": "trainer-2"},
            "actor trainer-2 (Trainer) in Trainer.step",
        ),
        (
            "make.<locals>.WorkerDict.run",
            {"class_name": "make.<locals>.WorkerDict", "actor_name": "x_0:3"},
            "actor x_0:3 (WorkerDict) in WorkerDict.run",
        ),
        ("ImplicitFunc.train", {"class_name": "ImplicitFunc", "repr_name": "objective"}, "Ray Tune trial of objective"),
        (
            "ResourceTrainable.__init__",
            {"class_name": "with_resources.<locals>.ResourceTrainable", "repr_name": "Experiment"},
            "Ray Tune trial of Experiment",
        ),
        ("ServeReplica:chat:Model.handle_request", {}, "Ray Serve deployment Model of application chat"),
        ("RayTrainWorker.run", {"class_name": "RayTrainWorker", "rank": "3"}, "Ray Train rank 3"),
        ("", {}, "task of no name"),
    ],
)
def test_a_call_is_named(function: str, more: dict[str, str], words: str) -> None:
    assert phrase(called(function, **more), function) == words


def test_the_subject_of_a_sentence_is_short() -> None:
    assert short(called("parse"), "parse") == "parse"
    assert short(called("Trainer.step", class_name="Trainer"), "Trainer.step") == "Trainer.step"
    assert short(called("ServeReplica:chat:Model.x")) == "deployment Model of application chat"


def test_ranks_of_ray_train_are_known_by_the_pids_that_a_driver_told() -> None:
    told = "- (ip=192.0.2.2, pid=887) world_rank=0, local_rank=0\n- (node_id=f5, ip=10.9.1.2, pid=31) world_rank=1, x"
    assert ranks_in(told) == {887: "0", 31: "1"}


def test_trials_are_known_by_the_actors_that_ray_tune_tells_of() -> None:
    raised, died = "a" * 32, "b" * 32
    text = (
        "ERROR tune_controller.py:1336 -- Trial task failed for trial objective_90db9_00001\n"
        f"RayTaskError(ValueError): ray::ImplicitFunc.train() (pid=7, ip=1.2.3.4, actor_id={raised}, repr=objective)\n"
        "ERROR tune_controller.py:1336 -- Trial task failed for trial objective_90db9_00002\n"
        f"ActorDiedError: The actor died.\n\tclass_name: ImplicitFunc\n\tactor_id: {died}\n"
        "ERROR tune_controller.py:1336 -- Trial task failed for trial objective_90db9_00003\nTimeoutError"
    )
    assert trials_in(text) == {raised: "objective_90db9_00001", died: "objective_90db9_00002"}
    assert trials_in("no trial") == {}
