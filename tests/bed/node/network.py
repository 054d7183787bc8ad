"""The node's network: an address on `lo`, a bridge for the pods, a route to Services, and a guard around it all.

Only the bridge forwards packets; the machine's own forwarding setting stays as it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bed.node.commands import run, succeeds
from bed.node.settings import (
    BRIDGE,
    BRIDGE_ADDRESS,
    GUARD_TABLE,
    NODE_ADDRESS,
    NODE_POD_RANGE,
    POD_RANGE,
    PROXY_TABLE,
    SERVICE_LINK,
    SERVICE_RANGE,
)

LOOPBACK = "lo"
CNI_PLUGINS = Path("/usr/lib/cni")
IP_FAMILIES = ("ip", "ip6")


def lay_node_address() -> None:
    """Give the machine the node's address, guarded: first of all, since the API server listens there."""
    run(["nft", "-f", "-"], stdin=guard_rules())
    run(["ip", "address", "replace", f"{NODE_ADDRESS}/32", "dev", LOOPBACK])


def lay_pod_network() -> None:
    """Make the bridge before any pod asks for it, and the route by which the machine's processes reach Services."""
    # Pods of one bridge answer each other directly; netfilter must still see that, or answers that come through a
    # Service would arrive from the wrong address.
    _add_bridge(BRIDGE, "nf_call_iptables", "1")
    run(["ip", "address", "replace", f"{BRIDGE_ADDRESS}/{NODE_POD_RANGE.prefixlen}", "dev", BRIDGE])
    Path(f"/proc/sys/net/ipv4/conf/{BRIDGE}/forwarding").write_text("1")
    # A link of its own: a route back into the pods' bridge would make the kernel tell pods to ask there themselves,
    # and a Service without endpoints would hang instead of refusing. An empty bridge, as not every kernel has dummies.
    _add_bridge(SERVICE_LINK)
    run(["ip", "route", "replace", str(SERVICE_RANGE), "dev", SERVICE_LINK, "src", str(NODE_ADDRESS)])


def remove_network() -> None:
    """Undo all of it and kube-proxy's tables; works from any half-made state."""
    for link in (BRIDGE, SERVICE_LINK):
        if _link_exists(link):
            run(["ip", "link", "delete", link])  # its addresses and routes go with it
    for family, table in [*((family, PROXY_TABLE) for family in IP_FAMILIES), ("inet", GUARD_TABLE)]:
        if succeeds(["nft", "list", "table", family, table]):
            run(["nft", "delete", "table", family, table])
    if _has_node_address():
        run(["ip", "address", "delete", f"{NODE_ADDRESS}/32", "dev", LOOPBACK])


def guard_rules() -> str:
    """Rules that keep the cluster inside the machine: pods cannot get out, and nothing outside can get in."""
    inside = f'{{ "{LOOPBACK}", "{BRIDGE}", "{SERVICE_LINK}" }}'
    cluster = f"{{ {NODE_ADDRESS}, {POD_RANGE}, {SERVICE_RANGE} }}"
    return f"""
table inet {GUARD_TABLE}
delete table inet {GUARD_TABLE}
table inet {GUARD_TABLE} {{
  chain arriving {{
    type filter hook input priority filter - 10; policy accept;
    iifname != {inside} ip daddr {cluster} drop
  }}
  chain passing {{
    type filter hook forward priority filter - 10; policy accept;
    iifname "{BRIDGE}" oifname != {inside} drop
    iifname != "{BRIDGE}" oifname "{BRIDGE}" drop
  }}
  chain leaving {{
    type filter hook output priority filter + 10; policy accept;
    oifname != {inside} ip daddr {cluster} reject
  }}
}}
"""


def cni_configuration(leases: Path) -> Mapping[str, Any]:
    """How containerd's plugins connect a pod: a port of the bridge, an address from the node's range."""
    gateway = str(BRIDGE_ADDRESS)
    bridge = {
        "type": "bridge",
        "bridge": BRIDGE,
        # True would switch on forwarding for the whole machine; the bridge has its address and forwards already.
        "isGateway": False,
        "ipMasq": False,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "dataDir": str(leases),
            "ranges": [[{"subnet": str(NODE_POD_RANGE), "gateway": gateway}]],
            "routes": [{"dst": "0.0.0.0/0", "gw": gateway}],
        },
    }
    return {"cniVersion": "0.4.0", "name": "bed", "plugins": [bridge]}


def _add_bridge(name: str, *options: str) -> None:
    if not _link_exists(name):
        run(["ip", "link", "add", name, "type", "bridge", *options])
    run(["ip", "link", "set", name, "up"])


def _link_exists(name: str) -> bool:
    return Path(f"/sys/class/net/{name}").exists()


def _has_node_address() -> bool:
    links = json.loads(run(["ip", "-json", "address", "show", "dev", LOOPBACK]))
    return any(entry["local"] == str(NODE_ADDRESS) for link in links for entry in link["addr_info"])
