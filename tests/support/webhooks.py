"""A real admission webhook for pods of one namespace, as slow as a test wants it, or down."""

from __future__ import annotations

import base64
import contextlib
import http.server
import json
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from bed.control_plane import ControlPlane
from bed.pki import Authority

WEBHOOK_TIMEOUT_SECONDS = 30  # the longest that Kubernetes allows
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


class Webhook:
    """Allows every pod, `seconds` after it was asked."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.asked = 0

    def server(self, pair: Path) -> http.server.ThreadingHTTPServer:
        webhook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                webhook.asked += 1
                time.sleep(webhook.seconds)
                answer = {**review, "response": {"uid": review["request"]["uid"], "allowed": True}}
                with contextlib.suppress(OSError):  # whoever asked may have gone
                    self.send_response(200)
                    self.end_headers()
                    self.wfile.write(json.dumps(answer).encode())

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(pair)
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        server.daemon_threads = True
        return server


@contextlib.contextmanager
def slow_webhook(plane: ControlPlane, namespace: str, seconds: float, folder: Path) -> Iterator[Webhook]:
    """One that is asked before each pod is created in the namespace."""
    authority = Authority.create("webhooks")
    pair = authority.issue("webhook", sans=["127.0.0.1"])
    (folder / "pair.pem").write_bytes(pair.certificate + pair.key)
    webhook = Webhook(seconds)
    server = webhook.server(folder / "pair.pem")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        with _registered(plane, namespace, f"https://127.0.0.1:{server.server_address[1]}/", authority):
            yield webhook
    finally:
        server.shutdown()
        server.server_close()


@contextlib.contextmanager
def webhook_that_is_down(plane: ControlPlane, namespace: str, port: int) -> Iterator[None]:
    """One at which nothing listens, so that no pod can be created in the namespace."""
    with _registered(plane, namespace, f"https://127.0.0.1:{port}/", Authority.create("webhooks")):
        yield


@contextlib.contextmanager
def _registered(plane: ControlPlane, namespace: str, url: str, authority: Authority) -> Iterator[None]:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    client = {"url": url, "caBundle": base64.b64encode(authority.pair.certificate).decode()}
    webhook = {
        "name": "pods.example.com",
        "rules": [rule],
        "clientConfig": client,
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "timeoutSeconds": WEBHOOK_TIMEOUT_SECONDS,
        "failurePolicy": "Fail",
    }
    body = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": f"slow-{namespace}"},
        "webhooks": [webhook],
    }
    plane.admin.post(CONFIGURATIONS, body)
    try:
        yield
    finally:
        plane.admin.delete(f"{CONFIGURATIONS}/slow-{namespace}")
