"""What charts make up at random stays the same over upgrades, or everybody would have to sign in again."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from bed.control_plane import ControlPlane
from support.helm_releases import OUR_CHARTS, Helm

SIGN_IN: Final = (
    *("store.url=s3://bucket/history", "auth.mode=oidc", "auth.publicUrl=https://history.example"),
    *("auth.oidc.issuerUrl=https://login.example", "auth.oidc.clientId=us", "auth.allow.uids={*}", "auth.also={token}"),
)
pytestmark = pytest.mark.bed


def test_an_upgrade_keeps_the_key_of_cookies_and_the_token(control_plane: ControlPlane, tmp_path: Path) -> None:
    helm, chart = Helm(control_plane, tmp_path, "kept-secrets"), OUR_CHARTS / "ray-history-server"
    values = [word for value in SIGN_IN for word in ("--set", value)]

    def secrets() -> dict[str, dict[str, str]]:
        found = control_plane.admin.get("/api/v1/namespaces/kept-secrets/secrets")["items"]
        return {one["metadata"]["name"]: one["data"] for one in found if not one["type"].startswith("helm.sh")}

    helm("install", "history", chart, *values, "--create-namespace")
    before = secrets()
    assert sorted(key for data in before.values() for key in data) == ["keys", "token"]
    helm("upgrade", "history", chart, *values, "--set", "replicaCount=2")
    assert secrets() == before
    helm("upgrade", "history", chart, "--reuse-values", "--set", "auth.contact=me")
    assert secrets() == before
    helm("uninstall", "history")


def test_an_upgrade_keeps_the_token_that_the_api_server_asks_for(control_plane: ControlPlane, tmp_path: Path) -> None:
    helm, chart = Helm(control_plane, tmp_path, "kept-tokens"), OUR_CHARTS / "kuberay-apiserver"
    values = ("--set", "security=null", "--set", "auth.mode=token")

    def token() -> str:
        return str(
            control_plane.admin.get("/api/v1/namespaces/kept-tokens/secrets/api-kuberay-apiserver-token")["data"]
        )

    helm("install", "api", chart, *values, "--create-namespace")
    before = token()
    helm("upgrade", "api", chart, *values, "--set", "replicaCount=2")
    assert token() == before
    helm("uninstall", "api")
