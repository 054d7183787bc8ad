"""The proxy's variables, under KubeRay's names. Cheap to import, since `--help` shows them."""

from __future__ import annotations

from typing import Final

VARIABLES: Final = {
    "HTTP_LOCAL_PORT": "Port for HTTP.",
    "HTTP_REMOTE_PORT": "HTTP port of the API server, on this machine or in this pod.",
    "ENABLE_GRPC": "Whether gRPC is passed on, too: true or false.",
    "GRPC_LOCAL_PORT": "Port for gRPC.",
    "GRPC_REMOTE_PORT": "gRPC port of the API server.",
    "SECURITY_PREFIX": "Paths that begin with this need the token; / for all.",
    "SECURITY_TOKEN": "The token.",
    "SECURITY_TOKEN_FILE": "File with the token, instead of the variable; it is read again when it changes.",
    "RAYKEEPER_CORS_ALLOW_ORIGIN": "Origin whose pages may call, or *; as --cors-allow-origin of the API server. "
    "Browsers ask whether they may without the token, so the proxy answers that itself.",
    "RAYKEEPER_LOG_LEVEL": "Lowest level that is logged: debug, info, warning or error.",
}
"""What each variable means."""
