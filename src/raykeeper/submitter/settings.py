"""What the submitter is told: KubeRay's flags and variables, and the entrypoint behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from raykeeper.errors import Misconfigured
from raykeeper.ray.credentials import PROJECTED_TOKEN_FILE, Credentials, NoToken, ray_credentials
from raykeeper.ray.jobs import JobSubmission
from raykeeper.settings.arguments import parse_arguments
from raykeeper.submitter.flags import FLAGS, VARIABLES

T = TypeVar("T")


@dataclass(frozen=True)
class SubmitterSettings:
    """Everything that can be set."""

    address: str
    """The dashboard (`RAY_DASHBOARD_ADDRESS`)."""
    job: JobSubmission
    """What is submitted (the flags, the entrypoint behind them, and `RAY_JOB_SUBMISSION_ID`)."""
    credentials: Credentials = field(default_factory=NoToken)
    """What the dashboard is shown (`RAY_AUTH_TOKEN`, `RAY_AUTH_TOKEN_PATH`)."""


def read_settings(arguments: Sequence[str], environment: Mapping[str, str]) -> SubmitterSettings:
    """All settings. Raises `Misconfigured` naming the first that is missing or cannot be used."""
    flags, words = split_entrypoint(arguments)
    given = parse_arguments(FLAGS, flags)
    if not words:
        raise Misconfigured("entrypoint", "", "write it behind the flags: submitter -- python job.py")
    job = JobSubmission(
        entrypoint=" ".join(words),
        submission_id=_needed(environment, "RAY_JOB_SUBMISSION_ID"),
        runtime_env=_json(given, "runtime-env-json", dict[str, Any], "a JSON object") or {},
        metadata=_json(given, "metadata-json", dict[str, str], "a JSON object of strings") or {},
        entrypoint_num_cpus=_json(given, "entrypoint-num-cpus", float, "a number") or 0.0,
        entrypoint_num_gpus=_json(given, "entrypoint-num-gpus", float, "a number") or 0.0,
        entrypoint_resources=_json(given, "entrypoint-resources", dict[str, float], "a JSON object of numbers") or {},
    )
    return SubmitterSettings(_needed(environment, "RAY_DASHBOARD_ADDRESS"), job, _credentials(environment))


def split_entrypoint(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The flags, and the words of the entrypoint: what stands behind `--`, or from the first word that is no flag."""
    flags: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "--":
            return flags, rest
        if not word.startswith("-"):
            return flags, [word, *rest]
        flags.append(word)
        if "=" not in word and rest:
            flags.append(rest.pop(0))
    return flags, []


def _needed(environment: Mapping[str, str], name: str) -> str:
    text = environment.get(name, "").strip()
    if not text:
        raise Misconfigured(name, "", VARIABLES[name])
    return text


def _json(given: Mapping[str, str], name: str, kind: type[T], wanted: str) -> T | None:
    text = given.get(name, "")
    if not text.strip():
        return None
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.MsgspecError as error:
        raise Misconfigured(f"--{name}", text[:200], f"it is not {wanted}: {error}") from error


def _credentials(environment: Mapping[str, str]) -> Credentials:
    file = environment.get("RAY_AUTH_TOKEN_PATH", "")
    if not file and environment.get("RAY_ENABLE_K8S_TOKEN_AUTH") == "true":
        file = str(PROJECTED_TOKEN_FILE)
    return ray_credentials(environment.get("RAY_AUTH_TOKEN", ""), Path(file) if file else None)
