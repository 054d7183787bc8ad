"""What failed, by the name that its user knows: an operator, a trial, a rank, a deployment, an actor; never a function
of Ray's own libraries. Pure.
"""

from __future__ import annotations

import re

from raykeeper.history.report.model import Who, WhoKind

_DATA_WORKER = re.compile(r"_?MapWorker\((?P<operator>.+)\)(?:\.\w+)?")
_SERVE_CLASS = re.compile(r"ServeReplica:(?P<app>[^:]*):(?P<deployment>[^.]+)(?:\.\w+)?")
_SERVE_NAME = re.compile(r"SERVE_REPLICA::(?:(?P<app>[^#]*)#)?(?P<deployment>[^#]+)#(?P<replica>[^#]+)")
TUNE_CLASSES = ("ImplicitFunc", "ResourceTrainable")
"""What Ray Tune makes of a function that it trains, and of whatever was given resources."""
TRAIN_CLASS = "RayTrainWorker"
"""In which ranks of Ray Train run."""
_DATA_TASKS = ("_map_task", "_split_single_block", "_split_at_indices", "_get_metadata", "_execute_read_task_split")
_LOCAL = "<locals>"
"""How Python calls what is defined within a function."""
_UNNAMED = "of no name"


def deployment(name: str, app: str) -> Who:
    return Who(WhoKind.DEPLOYMENT, f"{name} of application {app}" if app else name)


def replica_of(actor_name: str) -> tuple[Who, str] | None:
    """The deployment and the id of a Serve replica, by its actor's name."""
    found = _SERVE_NAME.fullmatch(actor_name)
    return (deployment(found["deployment"], found["app"] or ""), found["replica"]) if found else None


def actor_who(name: str, class_name: str, actor_id: str = "") -> Who:
    """An actor by the name that its program gave it, or by its class."""
    if found := replica_of(name):
        return found[0]
    own = f"{name} ({class_name})" if name and class_name and name != class_name else name or class_name
    return Who(WhoKind.ACTOR, own or actor_id or _UNNAMED)


_RANKS = re.compile(r"\bpid=(?P<pid>\d+)\)? world_rank=(?P<rank>\d+)")
"""How Ray Train tells of the workers that it started."""


def ranks_in(text: str) -> dict[int, str]:
    """By their pids, the ranks of Ray Train that a driver's log tells of."""
    return {int(found["pid"]): found["rank"] for found in _RANKS.finditer(text)}


_FAILED_TRIAL = re.compile(r"Trial task failed for trial (\S+)")
_ACTOR_ID = re.compile(r"\bactor_id[:=] ?(?P<id>[0-9a-f]{32})\b")


def trials_in(text: str) -> dict[str, str]:
    """By the ids of their actors, the trials of Ray Tune that a driver's log tells to have failed."""
    _, *told = _FAILED_TRIAL.split(text)
    actors = ((trial, _ACTOR_ID.search(words)) for trial, words in zip(told[::2], told[1::2], strict=True))
    return {actor["id"]: trial for trial, actor in actors if actor}


def called(
    function: str, *, name: str = "", actor_name: str = "", class_name: str = "", repr_name: str = "", rank: str = ""
) -> Who:
    """Of a task or a call of an actor's method; `name` is the task's own, where its program gave it one."""
    if rank:
        return Who(WhoKind.RANK, rank)
    if found := _DATA_WORKER.fullmatch(function) or _DATA_WORKER.fullmatch(name):
        return Who(WhoKind.OPERATOR, found["operator"])
    if found := _SERVE_CLASS.fullmatch(class_name or function):
        return deployment(found["deployment"], found["app"])
    class_ = class_name or function.rpartition(".")[0]
    if plain(class_) in TUNE_CLASSES and repr_name:
        return Who(WhoKind.TRIAL, repr_name)
    if function.rpartition(".")[2].startswith(_DATA_TASKS) and name and name != function:
        return Who(WhoKind.OPERATOR, name)
    if class_ and not class_.endswith(_LOCAL):
        return actor_who(actor_name, plain(class_))
    is_internal = function.startswith("_") and bool(name)
    return Who(WhoKind.TASK, plain((name if is_internal else function or name) or _UNNAMED))


def plain(name: str) -> str:
    """Of a class or function that is defined within another, its own name alone."""
    return name.rpartition(f"{_LOCAL}.")[2]


def phrase(who: Who, function: str = "") -> str:
    """In a few words, with the method of an actor: `actor trainer-2 (Trainer) in Trainer.step`."""
    has_method = who.kind is WhoKind.ACTOR and "." in function and not function.startswith("_")
    return f"{who.text} in {plain(function)}" if has_method else who.text


def short(who: Who, function: str = "") -> str:
    """As the subject of a sentence: `parse`, `Trainer.step`, `a trial of objective`."""
    if who.kind is WhoKind.TASK:
        return who.name
    if who.kind is WhoKind.ACTOR and "." in function:
        return plain(function)
    return _SUBJECTS.get(who.kind, "{}").format(who.name) if who.kind in _SUBJECTS else who.text


_SUBJECTS = {
    WhoKind.OPERATOR: "{}",
    WhoKind.TRIAL: "a trial of {}",
    WhoKind.RANK: "rank {}",
    WhoKind.DEPLOYMENT: "deployment {}",
    WhoKind.APPLICATION: "application {}",
    WhoKind.DRIVER: "the driver",
}
