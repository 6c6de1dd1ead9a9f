"""The OpenAPI document, made of the messages themselves."""

from functools import cache
from importlib.metadata import version
from typing import Any

import msgspec

from bothworlds.service import messages

POSTS: dict[str, tuple[Any, Any, str]] = {
    "/v1/decide": (messages.Decide, messages.Decided, "Choose an arm for a context"),
    "/v1/decide/batch": (messages.Decides, messages.Several, "Choose arms for several contexts, in one commit"),
    "/v1/reward": (messages.Reward, messages.Rewarded, "Say what a decision brought"),
    "/v1/reward/batch": (messages.Rewards, messages.Several, "Say what several decisions brought, in one commit"),
    "/v1/activate": (messages.Activate, messages.Activated, "Say that an inactive decision was shown"),
    "/v1/change": (messages.Change, messages.Changed, "Let arms come and go, or take another law of contexts"),
    "/v1/rollback": (messages.Rollback, messages.Changed, "Forget what was learnt after a version"),
}
GETS: dict[str, tuple[Any, str]] = {
    "/v1/plan": (messages.Planned, "The plan of now"),
    "/v1/decisions/{id}": (messages.Known, "All that is known of a decision"),
}
REFUSALS = {
    "400": "The body is not what is asked for",
    "401": "No token, or an unknown one",
    "403": "A token without the scope",
    "404": "There is no such decision or experiment",
    "409": "Something else was said before under this id",
    "413": "The body is too long",
    "422": "The context, the reward or the change is refused",
    "429": "Too many requests for this token",
    "503": "Nothing was stored; try again",
}


@cache
def openapi() -> bytes:
    """Return the document as JSON."""
    kinds = [kind for asked, answered, _ in POSTS.values() for kind in (asked, answered)]
    kinds += [answered for answered, _ in GETS.values()] + [messages.Refusal]
    named = list(dict.fromkeys(kinds))
    schemas, components = msgspec.json.schema_components(named, ref_template="#/components/schemas/{name}")
    schema = dict(zip(named, schemas, strict=True))
    refusals = {
        status: {"description": text, "content": _json(schema[messages.Refusal])} for status, text in REFUSALS.items()
    }
    paths: dict[str, Any] = {}
    for path, (asked, answered, text) in POSTS.items():
        paths[path] = {
            "post": {
                "summary": text,
                "requestBody": {"required": True, "content": _json(schema[asked])},
                "responses": {"200": {"description": "Done", "content": _json(schema[answered])}, **refusals},
            }
        }
    experiment = {"name": "experiment", "in": "query", "required": False, "schema": {"type": "string"}}
    for path, (answered, text) in GETS.items():
        named_part = [{"name": "id", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}]
        paths[path] = {
            "get": {
                "summary": text,
                "parameters": [*(named_part if "{id}" in path else []), experiment],
                "responses": {"200": {"description": "Done", "content": _json(schema[answered])}, **refusals},
            }
        }
    paths["/v1/health"] = {
        "get": {
            "summary": "Whether everything works",
            "responses": {
                status: {"description": text, "content": _json(_health())}
                for status, text in {"200": "It does", "503": "It does not"}.items()
            },
        }
    }
    document = {
        "openapi": "3.1.0",
        "info": {"title": "bothworlds", "version": version("bothworlds"), "description": "Decisions with a guarantee."},
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


def _health() -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "status": {"type": "string", "enum": ["ok", "failing"]},
            "failures": {"type": "array", "items": {"type": "string"}},
            "versions": {"type": "object", "additionalProperties": {"type": "integer"}},
        },
        "required": ["status", "failures", "versions"],
    }
