"""The API server's environment variables. Cheap to import, since `--help` shows them."""

from __future__ import annotations

from raykeeper.apiserver.flags import FLAGS

WITHOUT_FLAG = {"RAYKEEPER_AUTH_TOKEN": "Token for `--auth=token`."}
"""Secrets have no place on a command line."""

VARIABLES = {
    **{flag.variable: f"`{flag.spelling}`: {flag.help}" for flag in FLAGS if flag.variable},
    **WITHOUT_FLAG,
}
