"""The paths of the HTTP interface: which bodies they take, and which scope of a token they need."""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from bothworlds.service import messages
from bothworlds.service.request_stats import OTHER
from bothworlds.service.settings import Scope


class Path(NamedTuple):
    """A path for POST: decoder of the body, required scope, and the list of requests in a batch."""

    decoder: Any
    scope: Scope
    is_single: bool = False
    parts: Callable[[Any], list[Any]] | None = None


def _decoder(kind: Any) -> Any:
    return msgspec.json.Decoder(kind).decode


POSTED = {
    "/v1/decide": Path(_decoder(messages.Decide), "decide", is_single=True),
    "/v1/reward": Path(_decoder(messages.Reward), "reward", is_single=True),
    "/v1/activate": Path(_decoder(messages.Activate), "reward", is_single=True),
    "/v1/decide/batch": Path(_decoder(messages.Decides), "decide", parts=lambda body: body.decisions),
    "/v1/reward/batch": Path(_decoder(messages.Rewards), "reward", parts=lambda body: body.rewards),
    "/v1/local/batch": Path(_decoder(messages.Locals), "local", parts=lambda body: body.decisions),
    "/v1/change": Path(_decoder(messages.Change), "admin"),
    "/v1/settings": Path(_decoder(messages.SettingsChange), "admin"),
    "/v1/rollback": Path(_decoder(messages.Rollback), "admin"),
}
DECISIONS = "/v1/decisions/"
PROBES = ("/v1/health", "/v1/live", "/v1/ready")
GOT = ("/", "/metrics", "/openapi.json", "/v1/plan", "/v1/plan/file", *PROBES)
ROUTES = frozenset([*POSTED, *GOT])


def route_of(path: str) -> str:
    """Return the route of a path: one of few names, so that each can have its own counters.

    >>> route_of("/v1/decide"), route_of("/v1/decisions/visit 9"), route_of("/wp-login.php")
    ('/v1/decide', '/v1/decisions/{id}', 'other')
    """
    return path if path in ROUTES else f"{DECISIONS}{{id}}" if path.startswith(DECISIONS) else OTHER
