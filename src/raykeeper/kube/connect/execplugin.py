"""Credentials from a program that a kubeconfig names, as cloud providers ship them for kubectl."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import msgspec

from raykeeper.kube.connect.kubeconfig import Kubeconfig, Section

EXEC_SECONDS = 60.0
"""A plugin may open a browser or ask a slow identity provider, but must not hang a program for ever."""
MOST_OUTPUT = 1024 * 1024
"""Bytes of a credential; a certificate chain has some kilobytes."""
_CLUSTER_FIELDS = ("server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "proxy-url")


class _ExecCredential(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    status: dict[str, Any]


async def run_plugin(config: Kubeconfig) -> dict[str, Any]:
    """The status of the plugin's ExecCredential. Raises `Misconfigured` naming the plugin and what it said."""
    user, settings = config.user, config.user.fields["exec"] or {}
    command = str(settings.get("command") or "")
    if not command or not settings.get("apiVersion"):
        raise user.unusable("its exec plugin has no command or no apiVersion")
    output = await _output(command, settings, _environment(config, settings), user)
    try:
        credential = msgspec.json.decode(output, type=_ExecCredential)
    except msgspec.DecodeError as exc:
        raise user.unusable(f"exec plugin {command} printed no ExecCredential ({exc})") from exc
    if credential.api_version != settings["apiVersion"]:
        versions = f"{credential.api_version}, not {settings['apiVersion']}"
        raise user.unusable(f"exec plugin {command} printed an ExecCredential of {versions}")
    return credential.status


async def _output(command: str, settings: dict[str, Any], environment: dict[str, str], user: Section) -> bytes:
    # With a slash it is a path like every other in the file.
    program = str(user.folder / command) if "/" in command else command
    arguments = [str(argument) for argument in settings.get("args") or ()]
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(program, *arguments, env=environment, stdout=pipe, stderr=pipe)
    except OSError as exc:
        hint = f"; {settings['installHint'].strip()}" if settings.get("installHint") else ""
        raise user.unusable(f"exec plugin {command} cannot be started ({exc.strerror}){hint}") from exc
    try:
        async with asyncio.timeout(EXEC_SECONDS):
            output, complaint = await process.communicate()
    except TimeoutError as exc:
        raise user.unusable(f"exec plugin {command} did not end in {EXEC_SECONDS:g} s") from exc
    finally:
        if process.returncode is None:
            process.kill()
    if process.returncode:
        said = complaint.decode(errors="replace").strip()
        raise user.unusable(f"exec plugin {command} failed with exit code {process.returncode}: {said}")
    if len(output) > MOST_OUTPUT:
        raise user.unusable(f"exec plugin {command} printed more than {MOST_OUTPUT} bytes")
    return output


def _environment(config: Kubeconfig, settings: dict[str, Any]) -> dict[str, str]:
    """Ours, the variables that the kubeconfig adds, and what the plugin is told about why it runs."""
    added = {str(item["name"]): str(item["value"]) for item in settings.get("env") or ()}
    spec: dict[str, Any] = {"interactive": sys.stdout.isatty()}
    if settings.get("provideClusterInfo"):
        spec["cluster"] = {
            name: config.cluster.fields[name] for name in _CLUSTER_FIELDS if config.cluster.fields.get(name)
        }
    info = {"apiVersion": settings["apiVersion"], "kind": "ExecCredential", "spec": spec}
    return {**os.environ, **added, "KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode()}
