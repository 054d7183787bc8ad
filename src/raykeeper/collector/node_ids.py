"""Node ids as Ray leaves them on disk: in names of port files, in raylet logs, in what a hook wrote. Pure.

Ray 2.52 and 2.53 have no port files: their `ports_by_node.json` goes by address and socket, and names no node.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

_NODE_ID = r"[0-9a-f]{56}"  # 28 bytes, in every version of Ray
_WHOLE_ID = re.compile(_NODE_ID)
_PORT_FILE = re.compile(rf"(?P<server>[a-z_]+)_port_(?P<node_id>{_NODE_ID})")
_RAYLET_LINE = re.compile(
    rf"^\[(?P<time>[\d-]+ [\d:]+),\d+ .*Setting node ID node_id=(?P<node_id>{_NODE_ID})", re.MULTILINE
)
_HOOK_LINE = re.compile(rf"=>\s*(?P<node_id>{_NODE_ID})\s*$")
HEAD_SERVER = "gcs_server"
"""Only the head has a port file of it."""


def parse_port_file_name(name: str) -> tuple[str, str] | None:
    """The server and the node id in the name of a port file of Ray 2.54 and later; None for other names."""
    found = _PORT_FILE.fullmatch(name)
    return (found["server"], found["node_id"]) if found else None


def parse_raylet_log(text: str) -> tuple[str, datetime] | None:
    """The node id that a raylet says in its first lines, and when, by the clock on its wall as if that were UTC."""
    found = _RAYLET_LINE.search(text)
    if not found:
        return None
    try:
        return found["node_id"], datetime.fromisoformat(found["time"]).replace(tzinfo=UTC)
    except ValueError:
        return None


def parse_hook_file(text: str) -> str | None:
    """The node id that a `postStart` hook wrote: alone in a file, or after `=>` at the end of `init.log`."""
    if _WHOLE_ID.fullmatch(alone := text.strip()):
        return alone
    found = _HOOK_LINE.search(text)
    return found["node_id"] if found else None
