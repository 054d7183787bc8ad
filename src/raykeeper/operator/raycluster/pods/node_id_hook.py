"""The `postStart` hook that writes down a raylet's node id, in the files and words of Alibaba's HistoryServer.

Its own script replaces a user's hook, and holds the container up until a raylet runs, if need be for ever. This one
returns at once and leaves a process behind that waits, for an hour at most; then the user's hook runs in its place. It
needs a POSIX shell and `sleep`: no bash, `ps` or `grep -P`, which images lack. Our collector finds node ids without it.
"""

from __future__ import annotations

from typing import Final

from raykeeper.api.containers import RAY_LOGS_PATH
from raykeeper.api.meta import JSON

LOG_FILE: Final = f"{RAY_LOGS_PATH}/init.log"
NODE_ID_FILE: Final = f"{RAY_LOGS_PATH}/alibabacloud_raylet_node_id"

# NULs between a process's arguments are lost on `read`; an id ends where the dashes of the next argument begin. With
# hostPID all raylets of a machine are seen: ours has our file system. The process that waits is nobody's child, so that
# a hook which waits for its own children does not wait for it. And it has none of the hook's files open, whose end the
# container runtime waits for: only `exec` lets go of them, around a redirected function dash keeps copies.
SCRIPT: Final = f"""\
find_node_id() {{
  for process in /proc/[0-9]*; do
    name=
    read -r name < "$process/comm"
    [ "$name" = raylet ] || continue
    [ ! -e /proc/self/ns/mnt ] || [ "$process/ns/mnt" -ef /proc/self/ns/mnt ] || continue
    arguments=
    read -r arguments < "$process/cmdline"
    case $arguments in
    *--node_id=*)
      node_id=${{arguments#*--node_id=}}
      node_id=${{node_id%%[!0-9a-f]*}}
      [ -z "$node_id" ] || return 0
      ;;
    esac
  done
  return 1
}}
write_node_id() {{
  looks=0
  while [ $looks -lt 414 ]; do
    if find_node_id; then
      echo "$(date) raylet started: \\"$node_id\\" => $node_id" >> {LOG_FILE}
      echo "$node_id" > {NODE_ID_FILE}
      return
    fi
    echo "$(date) raylet not start" >> {LOG_FILE}
    looks=$((looks + 1))
    if [ $looks -lt 60 ]; then sleep 1; else sleep 10; fi || return
  done
  echo "$(date) raylet not start within an hour" >> {LOG_FILE}
}}
( (exec < /dev/null > /dev/null 2>&1; write_node_id) &)
[ $# -eq 0 ] || exec "$@"
"""


def with_node_id_hook(lifecycle: JSON | None) -> JSON:
    """A container's lifecycle with the hook before the user's own, which fails and delays as it did without.

    A request (`httpGet`) is the kubelet's to send and cannot be sent from within an image of which nothing is known:
    such a hook stays as it is, and the files are not written. So does `tcpSocket`, which no kubelet carries out.
    """
    given = lifecycle or {}
    users = given.get("postStart") or {}
    if "exec" in users:
        command = list(users["exec"].get("command") or ())
    elif "sleep" in users:
        command = ["sleep", str(users["sleep"].get("seconds", 0))]
    elif users:
        return given
    else:
        command = []
    return {**given, "postStart": {"exec": {"command": ["/bin/sh", "-c", SCRIPT, "sh", *command]}}}
