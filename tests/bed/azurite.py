"""Azurite from npm: Azure's own emulator of its Blob Storage."""

from __future__ import annotations

import base64
import secrets
import shutil
from pathlib import Path

from bed.daemons import LOOPBACK
from bed.kept_ports import kept_ports
from bed.npm import npm_program
from bed.processes import Process
from bed.rest import Refused, Rest
from bed.waiting import wait_until

ACCOUNT = "bed"


class Azurite:
    """Handle of one server in `folder`; clients need its `connection_string`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        port = kept_ports(folder, ["blob"])["blob"]
        self._port = port
        self.server = f"http://{LOOPBACK}:{port}"
        self.endpoint = f"{self.server}/{ACCOUNT}"
        self.account_key = self._kept_key()
        self.connection_string = (
            f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={self.account_key};"
            f"BlobEndpoint={self.endpoint};"
        )

    def up(self) -> None:
        """Start it; returns once it answers."""
        process = Process(
            "azurite", self._command(), self.folder, {"AZURITE_ACCOUNTS": f"{ACCOUNT}:{self.account_key}"}
        )
        process.start()
        wait_until(f"Azurite ready (log: {process.log_file})", self._answers)

    def _command(self) -> list[str]:
        command = [shutil.which("node") or "node", str(npm_program("azurite", "azurite-blob"))]
        place = [f"--blobHost={LOOPBACK}", f"--blobPort={self._port}", f"--location={self.folder}"]
        # opendal asks for a version that is newer than Azurite's list; telemetry would call its maker.
        return [*command, *place, "--skipApiVersionCheck", "--disableTelemetry", "--silent"]

    def _kept_key(self) -> str:
        file = self.folder / "account.key"
        if not file.exists():
            file.touch(mode=0o600)
            file.write_text(base64.b64encode(secrets.token_bytes(48)).decode())
        return file.read_text()

    def _answers(self) -> bool:
        try:
            Rest(self.server).raw("GET", f"/{ACCOUNT}?comp=list")
        except Refused:
            return True  # it wants a signature
        except OSError:
            return False
        return True
