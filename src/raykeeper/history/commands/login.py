"""`raykeeper login`: the code flow with PKCE at the provider of a history server. The browser comes back to this
machine (RFC 8252).
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec
from aiohttp import web

from raykeeper.clock import SystemClock
from raykeeper.errors import RaykeeperError, Unavailable
from raykeeper.history.commands.kept_logins import keep_login
from raykeeper.history.commands.subjects import ask_server
from raykeeper.oidc.code_flow import Attempt, Client, CodeFlow, new_attempt
from raykeeper.oidc.errors import TokenRefused
from raykeeper.oidc.provider import Provider
from raykeeper.oidc.settings import OidcSettings
from raykeeper.oidc.tokens import IdTokens

CLI_PATH: Final = "/auth/cli"
CALLBACK: Final = "/callback"
PATIENCE_SECONDS: Final = 300.0
_DONE: Final = "You are signed in. Close this page and go back to the terminal."
_FAILED: Final = "This login did not work. The terminal says why."


class LoginFailed(RaykeeperError):
    """The text says why."""


class CliLogin(msgspec.Struct, frozen=True):
    """How programs sign in, as the server says it."""

    issuer: str
    client_id: str
    scopes: tuple[str, ...] = ("openid",)


@dataclass(frozen=True)
class LoginCommand:
    server: str
    seconds: float = PATIENCE_SECONDS


def run(
    command: LoginCommand,
    environment: Mapping[str, str],
    open_page: Callable[[str], object],
    say: Callable[[str], None],
) -> None:
    """Sign in and keep the token. Raises LoginFailed, Misconfigured and Unavailable."""
    token, name = asyncio.run(_sign_in(command, open_page, say))
    file = keep_login(command.server, token, environment)
    say(f"Signed in as {name}. The token is in {file}.")


async def _sign_in(
    command: LoginCommand, open_page: Callable[[str], object], say: Callable[[str], None]
) -> tuple[str, str]:
    how = await _how(command.server)
    provider = Provider(how.issuer, SystemClock())
    flow = CodeFlow(provider, Client(how.client_id, scopes=how.scopes))
    attempt, answered = new_attempt(), asyncio.get_running_loop().create_future()
    runner = web.AppRunner(_listener(attempt, answered))
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        redirect_uri = f"http://127.0.0.1:{runner.addresses[0][1]}{CALLBACK}"
        address = await flow.authorization_url(attempt, redirect_uri)
        say(f"Sign in in the browser. If no page opens, open this one:\n\n  {address}\n")
        open_page(address)
        parameters = await asyncio.wait_for(answered, command.seconds)
        await flow.check_issuer(parameters.get("iss"))
        if "code" not in parameters:
            raise LoginFailed("the identity provider refused the login")
        tokens = await flow.exchange(parameters["code"], attempt.verifier, redirect_uri)
        settings = OidcSettings(how.issuer, how.client_id, username_prefix="-")
        checks = IdTokens(settings, provider, SystemClock())
        claims = await checks.claims(tokens.id_token)
        if claims.get("nonce") != attempt.nonce:
            raise LoginFailed("the identity provider's token was made for another login")
        return tokens.id_token, checks.named(claims).user
    except TimeoutError as exc:
        raise LoginFailed(f"nobody signed in within {command.seconds:g} seconds") from exc
    except TokenRefused as exc:
        raise LoginFailed(str(exc)) from exc
    finally:
        await runner.cleanup()


async def _how(server: str) -> CliLogin:
    try:
        return msgspec.json.decode(await ask_server(server, CLI_PATH, ""), type=CliLogin)
    except msgspec.DecodeError as exc:
        raise LoginFailed(f"{server} has no login for the command line: set --oidc-cli-client-id there") from exc
    except Unavailable as exc:
        raise LoginFailed(f"{exc}; the server needs --auth=oidc and --oidc-cli-client-id for this") from exc


def _listener(attempt: Attempt, answered: asyncio.Future[Mapping[str, str]]) -> web.Application:
    """Takes the one answer that belongs to this login; any other request to this port changes nothing."""

    async def take(request: web.Request) -> web.Response:
        state = request.query.get("state", "")
        if answered.done() or not hmac.compare_digest(state.encode(), attempt.state.encode()):
            return web.Response(text="This is no answer to a login.", status=400)
        answered.set_result(dict(request.query))
        return web.Response(text=_DONE if "code" in request.query else _FAILED)

    app = web.Application()
    app.router.add_get(CALLBACK, take)
    return app
