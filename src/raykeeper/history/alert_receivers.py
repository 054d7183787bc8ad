"""The file of `--alerts`: who is told of failed jobs, of which ones, and how secrets for that are found.

Its file is YAML, or JSON. A mistake in it stops the server at its start, by the line it is in. Secrets stand in files
or variables of their own, never in this file, and are read again whenever they are needed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, cast, get_args
from urllib.parse import urlsplit

from raykeeper.settings.yaml_file import (
    YamlFileError,
    elements_of,
    line_of,
    members_of,
    parse_yaml,
    read_yaml_file,
    text_of,
)

ReceiverKind = Literal["webhook", "slack", "alertmanager"]
MOST_RECEIVERS = 20
MOST_PATTERNS = 100
SECRET_BYTES = 8192
_URL_CHARS = 2048
OUTCOMES = ("failed", "with failures", "stopped")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class SecretMissing(Exception):
    """A secret cannot be read; the text says where it should be and never what it is."""


@dataclass(frozen=True)
class Secret:
    """Where a secret is: in a file, or in a variable of the environment."""

    file: Path | None = None
    variable: str = ""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    @property
    def place(self) -> str:
        return f"file {self.file}" if self.file else f"variable {self.variable}"

    def read(self) -> str:
        """The secret as it is now: one that was renewed counts at once. Raises SecretMissing."""
        if self.file is None:
            text = self.environment.get(self.variable, "")
        else:
            try:
                with self.file.open("rb") as file:
                    text = file.read(SECRET_BYTES + 1).decode().strip()
            except (OSError, UnicodeDecodeError) as exc:
                raise SecretMissing(f"{self.place} cannot be read ({type(exc).__name__})") from None
        if not 0 < len(text) <= SECRET_BYTES or not text.isascii() or not text.isprintable() or " " in text:
            raise SecretMissing(f"{self.place} must hold one line without spaces")
        return text


@dataclass(frozen=True)
class Receiver:
    """One place that is told, and of what."""

    name: str
    kind: ReceiverKind
    address: str | Secret
    """A URL, or where it is."""
    bearer: Secret | None = None
    """Token for the header `Authorization`."""
    signing: Secret | None = None
    """Secret for the header `X-Raykeeper-Signature`."""
    ca_file: Path | None = None
    """Whom to trust instead of the machine's own authorities."""
    namespaces: tuple[str, ...] = ("*",)
    clusters: tuple[str, ...] = ("*",)
    outcomes: tuple[str, ...] = ("failed",)
    causes: tuple[str, ...] = ("*",)
    """Patterns of kinds of causes, by the names of the rules of docs/report.md."""

    def url(self) -> str:
        """Raises SecretMissing."""
        if isinstance(self.address, str):
            return self.address
        url = self.address.read()
        if problem := url_problem(self, url):
            raise SecretMissing(f"the URL in {self.address.place}: {problem}")
        return url

    def wants_cluster(self, namespace: str, cluster: str) -> bool:
        return _fits(namespace, self.namespaces) and _fits(cluster, self.clusters)

    def wants_cause(self, rule: str) -> bool:
        """A cause that is not known fits no pattern but `*`."""
        return _fits(rule, self.causes)


@dataclass(frozen=True)
class AlertTiming:
    """When an alert is sent, in seconds."""

    look_seconds: float = 10.0
    """Between two looks for failed jobs."""
    settle_seconds: float = 15.0
    """After the end of a job, until its last events and log lines are stored."""
    cause_wait_seconds: float = 120.0
    """For a confirmed cause; then the alert says that its cause is provisional."""
    retry_seconds: float = 30.0
    """Until the second attempt, twice as long each time up to ten minutes; and for a server that died over it."""
    timeout_seconds: float = 10.0
    """Of one attempt."""
    max_age_seconds: float = 24 * 3600.0
    """After the end of a job nobody is told of it any more."""


@dataclass(frozen=True)
class AlertSettings:
    """All of the file."""

    receivers: tuple[Receiver, ...]
    """Who is told, and of what."""
    link: str = ""
    """The server as people reach it, without a slash at its end; empty: alerts have no links."""
    timing: AlertTiming = field(default_factory=AlertTiming)
    """When."""


def read_alerts(setting: str, path: Path, environment: Mapping[str, str]) -> AlertSettings:
    """Raises Misconfigured, which names the file and the line. Every secret is there, or it says so."""
    return read_yaml_file(setting, path, lambda text: parse_alerts(text, environment))


def parse_alerts(text: bytes, environment: Mapping[str, str]) -> AlertSettings:
    """Raises YamlFileError."""
    root = parse_yaml(text, "`receivers`")
    members = members_of(root, ("link", "timing", "receivers"))
    if "receivers" not in members:
        raise YamlFileError(line_of(root), "receivers is missing")
    receivers: dict[str, Receiver] = {}
    for node in elements_of(members["receivers"], "receivers", MOST_RECEIVERS):
        receiver = _receiver(node, environment)
        if receiver.name in receivers:
            raise YamlFileError(line_of(node), f"there are two receivers {receiver.name!r}")
        receivers[receiver.name] = receiver
    timing = _timing(members["timing"]) if "timing" in members else AlertTiming()
    link = _link(members["link"]) if "link" in members else ""
    return AlertSettings(tuple(receivers.values()), link, timing)


def url_problem(receiver: Receiver, url: str) -> str:
    """Why a URL cannot be used, in words that do not tell it; empty where it can."""
    try:
        parts = urlsplit(url)
        is_whole = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return "it is no URL"
    if not is_whole or parts.scheme not in ("http", "https") or len(url) > _URL_CHARS:
        return "use a URL with http or https and a host"
    if parts.username is not None or parts.fragment:
        return "it must have neither a user nor a fragment; a token belongs into bearer_file"
    is_secret = receiver.kind == "slack" or receiver.bearer is not None
    if parts.scheme == "http" and is_secret and parts.hostname not in _LOOPBACK:
        return "use https: over http others could read the secret in it"
    return ""


_RECEIVER = (
    *("name", "kind", "url", "url_file", "url_env", "bearer_file", "bearer_env", "signing_secret_file"),
    *("signing_secret_env", "ca_file", "namespaces", "clusters", "outcomes", "causes"),
)


def _receiver(node: Any, environment: Mapping[str, str]) -> Receiver:
    members = members_of(node, _RECEIVER)
    for name in ("name", "kind"):
        if name not in members:
            raise YamlFileError(line_of(node), f"a receiver needs a {name}")
    kind = text_of(members["kind"])
    if kind not in get_args(ReceiverKind):
        raise YamlFileError(line_of(members["kind"]), f"kind must be one of {', '.join(get_args(ReceiverKind))}")
    name = text_of(members["name"])
    if not _NAME.fullmatch(name):
        raise YamlFileError(line_of(members["name"]), "a name has at most 40 of a-z, 0-9 and -")
    receiver = Receiver(
        name,
        cast(ReceiverKind, kind),
        _address(node, members, kind, environment),
        bearer=_secret(members, "bearer", environment),
        signing=_secret(members, "signing_secret", environment),
        ca_file=_readable_file(members["ca_file"]) if "ca_file" in members else None,
        **{member: _patterns(members[member]) for member in ("namespaces", "clusters", "causes") if member in members},
        outcomes=_outcomes(members["outcomes"]) if "outcomes" in members else Receiver.outcomes,
    )
    if isinstance(receiver.address, str) and (problem := url_problem(receiver, receiver.address)):
        raise YamlFileError(line_of(members["url"]), problem)
    _check_secrets(node, receiver)
    return receiver


def _address(node: Any, members: Mapping[str, Any], kind: str, environment: Mapping[str, str]) -> str | Secret:
    given = [name for name in ("url", "url_file", "url_env") if name in members]
    if len(given) != 1:
        raise YamlFileError(line_of(node), "give one of url, url_file and url_env")
    if given[0] != "url":
        return _secret(members, "url", environment) or Secret()
    if kind == "slack":
        raise YamlFileError(line_of(members["url"]), "the URL is a secret with Slack: use url_file or url_env")
    return text_of(members["url"], _URL_CHARS)


def _secret(members: Mapping[str, Any], name: str, environment: Mapping[str, str]) -> Secret | None:
    file, variable = members.get(f"{name}_file"), members.get(f"{name}_env")
    if file is not None and variable is not None:
        raise YamlFileError(line_of(variable), f"give {name}_file or {name}_env, not both")
    if file is not None:
        return Secret(file=Path(text_of(file, _URL_CHARS)))
    return Secret(variable=text_of(variable), environment=environment) if variable is not None else None


def _check_secrets(node: Any, receiver: Receiver) -> None:
    try:
        receiver.url()
        for secret in (receiver.bearer, receiver.signing):
            if secret is not None:
                secret.read()
    except SecretMissing as exc:
        raise YamlFileError(line_of(node), f"receiver {receiver.name}: {exc}") from None


def _readable_file(node: Any) -> Path:
    path = Path(text_of(node, _URL_CHARS))
    if not path.is_file():
        raise YamlFileError(line_of(node), f"there is no file {path}")
    return path


def _patterns(node: Any) -> tuple[str, ...]:
    return tuple(text_of(one) for one in elements_of(node, "patterns", MOST_PATTERNS))


def _outcomes(node: Any) -> tuple[str, ...]:
    wanted = _patterns(node)
    if unknown := [one for one in wanted if one not in OUTCOMES]:
        raise YamlFileError(line_of(node), f"{unknown[0]!r} is no outcome; there are {', '.join(OUTCOMES)}")
    return wanted


def _link(node: Any) -> str:
    text = text_of(node, _URL_CHARS)
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.username is not None:
        raise YamlFileError(
            line_of(node), "link must be the address of this server, such as https://history.example.com"
        )
    return text.rstrip("/")


_TIMES: Mapping[str, tuple[float, float]] = {
    "look_seconds": (0.2, 600),
    "settle_seconds": (0, 3600),
    "cause_wait_seconds": (0, 24 * 3600),
    "retry_seconds": (1, 3600),
    "timeout_seconds": (0.2, 60),
    "max_age_seconds": (1, 7 * 24 * 3600),
}


def _timing(node: Any) -> AlertTiming:
    members = members_of(node, _TIMES)
    values = {name: _seconds(value, *_TIMES[name]) for name, value in members.items()}
    timing = AlertTiming(**values)
    if timing.retry_seconds < 2 * timing.timeout_seconds:
        raise YamlFileError(line_of(node), "retry_seconds must be at least twice timeout_seconds")
    return timing


def _seconds(node: Any, least: float, most: float) -> float:
    try:
        seconds = float(node.value) if node.id == "scalar" else -1.0
    except ValueError:
        seconds = -1.0
    if not least <= seconds <= most:  # NaN is in no range
        raise YamlFileError(line_of(node), f"here must be a number of seconds from {least:g} to {most:g}")
    return seconds


def _fits(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
