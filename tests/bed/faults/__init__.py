"""Ways to harm a connection: cut, stall, slow down (`TcpProxy`), or answer wrongly (`HttpFaults`)."""

from bed.faults.http import HttpFaults
from bed.faults.rules import Fault
from bed.faults.tcp import TcpProxy

__all__ = ["Fault", "HttpFaults", "TcpProxy"]
