"""The server process: builds the clients, wires both protocols to the same calls, and answers until told to end."""

from __future__ import annotations

import asyncio
import signal
import socket
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from raykeeper.apiserver.auth.callers import (
    Authenticator,
    Everybody,
    KubernetesTokens,
    OidcTokens,
    OwnTokens,
    PassedOn,
    Rights,
)
from raykeeper.apiserver.dispatch import Dispatcher
from raykeeper.apiserver.grpc_server import GrpcServer
from raykeeper.apiserver.metrics import ApiMetrics
from raykeeper.apiserver.rest.app import HttpApp
from raykeeper.apiserver.rest.gateway import Gateway
from raykeeper.apiserver.services.heads import Heads
from raykeeper.apiserver.services.table import calls
from raykeeper.apiserver.settings import ApiAccessSettings, ApiServerSettings
from raykeeper.apiserver.v2.proxy import V2Proxy
from raykeeper.clock import Clock, SystemClock
from raykeeper.errors import Unavailable
from raykeeper.kube.client import Kube
from raykeeper.kube.connect.connection import load_connection
from raykeeper.kube.errors import ApiError
from raykeeper.kube.http.requests import Request
from raykeeper.kube.metrics import KubeMetrics
from raykeeper.kube.reviews import AccessReviews, TokenReviews
from raykeeper.logs import Log
from raykeeper.web.cors import Cors
from raykeeper.web.listener import BoundedServer, open_listener

STOP_SECONDS: Final = 20.0
"""For calls under way when the process is told to end; the kubelet kills at 30."""
LEAVING_SECONDS: Final = 1.0
"""Between failing probes and closing the door, so that whoever looks there first goes elsewhere."""
REVIEW_QPS, REVIEW_BURST, REVIEW_CONNECTIONS = 100.0, 200, 8
"""Of questions about tokens, and as much again of those about rights: made-up tokens must delay neither rights of
others nor the requests themselves."""
CONTACT_SECONDS: Final = 2.0
MONITORING_CONNECTIONS: Final = 64
"""Of kubelets and Prometheus; strangers there must not use up what the API has."""

log = Log("raykeeper.apiserver")


def serve(settings: ApiServerSettings) -> int:
    """Answer until SIGTERM or SIGINT; the exit code. Stops by name on a setting that cannot be used."""
    with ExitStack() as opened:
        listeners = Listeners(http=opened.enter_context(open_listener("--httpPortFlag", settings.http)))
        if settings.metrics is not None:
            listeners.metrics = opened.enter_context(open_listener("--metrics-addr", settings.metrics))
        asyncio.run(_answer(settings, listeners))
    return 0


@dataclass
class Listeners:
    """Sockets that are open before anything else is done, so that a port that is taken is told at once."""

    http: socket.socket
    metrics: socket.socket | None = None


async def _answer(settings: ApiServerSettings, listeners: Listeners) -> None:
    clock = SystemClock()
    connection = await load_connection(settings.kube.kubeconfig, clock=clock)
    table = calls(clock, Heads(settings.heads.cluster_domain, settings.heads.is_proxied))
    metrics = ApiMetrics(table)
    kube_metrics = KubeMetrics(metrics.registry)
    async with Kube(
        connection, metrics=kube_metrics, qps=settings.kube.qps, burst=settings.kube.burst, clock=clock
    ) as kube:
        authenticator = make_authenticator(settings.access, kube, clock)
        dispatcher = Dispatcher(authenticator, metrics, clock, settings.call_seconds)
        is_local = settings.access.answers_localhost_only
        v2 = V2Proxy(kube, authenticator, metrics.v2_requests, settings.access.mode == "none") if settings.v2 else None
        cors = Cors(settings.cors_origin)
        app = HttpApp(Gateway(table, dispatcher), v2, cors, metrics.registry, is_local=is_local)
        await _serve_both(listeners, app, GrpcServer(settings.grpc, table, dispatcher), kube)


def make_authenticator(access: ApiAccessSettings, kube: Kube, clock: Clock) -> Authenticator:
    """Whoever decides who may call."""
    if access.mode == "token":
        return OwnTokens(kube, access.tokens)
    if access.mode == "passthrough":
        return PassedOn(kube)
    if access.mode == "none":
        return Everybody(kube)
    rights = Rights(kube, AccessReviews(_reviewer(kube), clock), access.impersonate)
    if access.mode == "kubernetes":
        return KubernetesTokens(TokenReviews(_reviewer(kube), clock, access.audiences), rights)
    from raykeeper.oidc.provider import Provider  # 9 MB that other modes do without
    from raykeeper.oidc.tokens import IdTokens

    provider = Provider(access.oidc.issuer_url, clock, access.oidc.ca_file)
    return OidcTokens(IdTokens(access.oidc, provider, clock), rights)


def _reviewer(kube: Kube) -> Kube:
    return kube.with_budget(REVIEW_QPS, REVIEW_BURST, connections=REVIEW_CONNECTIONS)


async def _serve_both(listeners: Listeners, app: HttpApp, grpc_server: GrpcServer, kube: Kube) -> None:
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    connections = BoundedServer(app.answer)
    monitoring = BoundedServer(app.answer_monitoring, MONITORING_CONNECTIONS)
    contact = asyncio.create_task(_first_contact(kube), name="first contact with Kubernetes")
    app.is_ready = lambda: None if contact.done() else f"no answer yet from {kube.connection.server}"
    http_server = await loop.create_server(connections, sock=listeners.http)
    if listeners.metrics is not None:
        await loop.create_server(monitoring, sock=listeners.metrics)
    await grpc_server.start()
    log.info(
        "listening", http=listeners.http.getsockname()[:2], grpc=grpc_server.port, kubernetes=kube.connection.server
    )
    await stopped.wait()
    app.is_stopping = True
    contact.cancel()
    log.info("stopping; calls under way are answered first")
    await asyncio.sleep(LEAVING_SECONDS)
    http_server.close()
    await asyncio.gather(_end(connections), _end(monitoring), grpc_server.stop(STOP_SECONDS))
    log.info("stopped")


async def _end(connections: web.Server) -> None:
    connections.pre_shutdown()
    await connections.shutdown(STOP_SECONDS)


async def _first_contact(kube: Kube) -> None:
    """Return once the API server has answered anything at all."""
    while True:
        try:
            await kube.send(Request("GET", "/version", "first contact"))
        except ApiError:
            return
        except Unavailable as exc:
            log.warning("Kubernetes does not answer yet", error=str(exc))
            await asyncio.sleep(CONTACT_SECONDS)
        else:
            return
