"""How long an answer is waited for, and why there was none, in words a person can act on."""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass

import aiohttp

from raykeeper.kube.connect.connection import Connection


@dataclass(frozen=True)
class Patience:
    """Seconds of silence after which a request is given up."""

    turn: float = 30.0
    """For a connection that other requests use: the longest that an admission webhook may take."""
    connect: float = 10.0
    """For TCP and TLS; a lost SYN is sent again after 1, 3 and 7 seconds."""
    read: float = 30.0
    """Another replica behind the same address may answer the next try."""
    write: float = 65.0
    """The API server gives up by itself after 60 and says so; leaving earlier would leave open what it did."""


PATIENCE = Patience()

NO_ANSWER = (aiohttp.ClientError, TimeoutError, OSError)
"""Everything aiohttp raises for a request that the network, TLS or the peer failed. `ssl.SSLError` is an OSError."""

NEVER_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
"""Those of them that come before the first byte."""

# OpenSSL's X509_V_ERR_* numbers.
_UNKNOWN_AUTHORITY = frozenset({2, 18, 19, 20, 21})
_SERVER_CERTIFICATE_EXPIRED = 10
_WRONG_NAME = frozenset({62, 64})


def why_unanswered(exc: BaseException, connection: Connection, connect: float, silence: float) -> str:
    """The cause of a failed request: refused, unknown name, wrong CA, silence, dropped connection."""
    if isinstance(exc, aiohttp.ClientConnectorCertificateError):
        return _certificate_cause(exc.certificate_error, connection)
    if isinstance(exc, aiohttp.ClientConnectorDNSError):
        return f"the name {exc.host} is not known"
    if isinstance(exc, aiohttp.ClientProxyConnectionError | aiohttp.ClientHttpProxyError):
        return _proxy_cause(exc, connection.proxy or "")
    if isinstance(exc, aiohttp.ClientConnectorSSLError):
        return f"TLS cannot be agreed on ({_tls_reason(exc.os_error)})"
    if isinstance(exc, aiohttp.ConnectionTimeoutError):
        return f"no connection within {connect:g} s"
    if isinstance(exc, TimeoutError):
        return f"no answer in {silence:g} s"
    if isinstance(exc, aiohttp.ClientConnectorError):
        return _os_cause(exc.os_error)
    return _dropped_cause(exc)


def _certificate_cause(exc: Exception, connection: Connection) -> str:
    code = exc.verify_code if isinstance(exc, ssl.SSLCertVerificationError) else 0
    if code in _UNKNOWN_AUTHORITY:
        return f"its certificate is signed by an unknown authority: the CA in {connection.source} does not match"
    if code == _SERVER_CERTIFICATE_EXPIRED:
        return "its certificate has expired"
    if code in _WRONG_NAME:
        name = connection.tls_server_name or "this address"
        return f"its certificate is not made for {name}; set tls-server-name in {connection.source}"
    return f"its certificate is not accepted ({_tls_reason(exc)})"


def _proxy_cause(exc: aiohttp.ClientProxyConnectionError | aiohttp.ClientHttpProxyError, proxy: str) -> str:
    scheme, _, rest = proxy.partition("://")
    shown = f"{scheme}://{rest.rpartition('@')[2]}"  # without its password
    if isinstance(exc, aiohttp.ClientHttpProxyError):
        return f"the proxy {shown} answered {exc.status} {exc.message}"
    return f"the proxy {shown} cannot be reached ({_os_cause(exc.os_error)})"


def _os_cause(exc: OSError) -> str:
    if isinstance(exc, ConnectionRefusedError):
        return "connection refused: nothing listens there"
    if isinstance(exc, socket.gaierror):
        return "the name is not known"
    return (exc.strerror or str(exc) or type(exc).__name__).lower()


def _dropped_cause(exc: BaseException) -> str:
    if isinstance(exc, ssl.SSLError):
        return f"TLS failed ({_tls_reason(exc)})"
    if isinstance(exc, aiohttp.ServerDisconnectedError | ConnectionResetError | BrokenPipeError):
        return "the connection was dropped before the answer"
    if isinstance(exc, aiohttp.ClientPayloadError):
        return "the connection was dropped in the middle of the answer"
    if isinstance(exc, OSError):
        return _os_cause(exc)
    return f"the answer cannot be understood ({exc})"


def _tls_reason(exc: BaseException) -> str:
    reason = getattr(exc, "verify_message", None) or getattr(exc, "reason", None) or str(exc)
    return str(reason).replace("_", " ").lower()
