"""The OpenAPI document, generated from the request and response types."""

from functools import cache
from importlib.metadata import version
from typing import Any

import msgspec

from bothworlds.service import messages

POSTS: dict[str, tuple[Any, Any, str]] = {
    "/v1/decide": (messages.Decide, messages.Decided, "Choose an arm for a context"),
    "/v1/decide/batch": (messages.Decides, messages.Several, "Choose arms for several contexts, in one commit"),
    "/v1/local/batch": (messages.Locals, messages.Several, "Store decisions that the client took from a plan"),
    "/v1/reward": (messages.Reward, messages.Rewarded, "Report the reward of a decision"),
    "/v1/reward/batch": (messages.Rewards, messages.Several, "Report several rewards, in one commit"),
    "/v1/activate": (messages.Activate, messages.Activated, "Activate a decision that was shown"),
    "/v1/change": (messages.Change, messages.Changed, "Add and retire arms, or replace the context distribution"),
    "/v1/settings": (messages.SettingsChange, messages.Changed, "Change holdout, reward window or algorithm"),
    "/v1/rollback": (messages.Rollback, messages.Changed, "Return to an earlier version"),
}
GETS: dict[str, tuple[Any, str]] = {
    "/v1/plan": (messages.Planned, "The current plan"),
    "/v1/plan/file": (messages.PlanFile, "The current plan as a file, to decide elsewhere"),
    "/v1/decisions/{id}": (messages.Known, "Everything known about a decision"),
}
PROBES = {  # summary, and descriptions of 200 and 503
    "/v1/health": ("Everything that fails at the moment", "Everything works", "Something fails"),
    "/v1/live": ("Whether a restart is needed", "All threads work", "A thread is dead or stuck: restart the service"),
    "/v1/ready": ("Whether decisions can be taken and stored", "Send requests", "Send no requests for now"),
}
REFUSALS = {
    "400": "Invalid request body",
    "401": "Missing or unknown token",
    "403": "The token lacks the scope",
    "404": "No such decision or experiment",
    "408": "The request body did not arrive in time",
    "409": "Conflicts with an earlier request for this id",
    "413": "Request body too large",
    "422": "Invalid context, reward or change",
    "429": "Rate limit of the token exceeded",
    "503": "Nothing was stored, or it is not known whether it was; try again with the same id",
}


@cache
def openapi() -> bytes:
    """Return the OpenAPI document as JSON."""
    types = [part for request, response, _ in POSTS.values() for part in (request, response)]
    types += [response for response, _ in GETS.values()] + [messages.Refusal]
    unique = list(dict.fromkeys(types))
    schemas, components = msgspec.json.schema_components(unique, ref_template="#/components/schemas/{name}")
    schema = dict(zip(unique, schemas, strict=True))
    refusals = {
        status: {"description": text, "content": _json(schema[messages.Refusal])} for status, text in REFUSALS.items()
    }
    paths: dict[str, Any] = {}
    for path, (request, response, text) in POSTS.items():
        paths[path] = {
            "post": {
                "summary": text,
                "requestBody": {"required": True, "content": _json(schema[request])},
                "responses": {"200": {"description": "Done", "content": _json(schema[response])}, **refusals},
            }
        }
    experiment = {"name": "experiment", "in": "query", "required": False, "schema": {"type": "string"}}
    for path, (response, text) in GETS.items():
        id_parameter = [{"name": "id", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}]
        paths[path] = {
            "get": {
                "summary": text,
                "parameters": [*(id_parameter if "{id}" in path else []), experiment],
                "responses": {"200": {"description": "Done", "content": _json(schema[response])}, **refusals},
            }
        }
    paths.update((path, _probe(path, *texts)) for path, texts in PROBES.items())
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": "bothworlds",
            "version": version("bothworlds"),
            "description": "Contextual bandit decisions over HTTP.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }
    return msgspec.json.encode(document)


def _json(schema: Any) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _probe(path: str, summary: str, ok: str, failing: str) -> dict[str, Any]:
    """Return the description of a path that needs no token and says what fails."""
    properties: dict[str, Any] = {
        "status": {"type": "string", "enum": ["ok", "failing"]},
        "failures": {"type": "array", "items": {"type": "string"}},
    }
    if path == "/v1/health":
        properties["versions"] = {"type": "object", "additionalProperties": {"type": "integer"}}
    content = _json({"type": "object", "properties": properties, "required": list(properties)})
    responses = {status: {"description": text, "content": content} for status, text in (("200", ok), ("503", failing))}
    return {"get": {"summary": summary, "responses": responses}}
