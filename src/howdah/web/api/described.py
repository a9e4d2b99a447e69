"""Described: the table of calls as OpenAPI 3.1, written from their types."""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import msgspec

from howdah.version import VERSION
from howdah.web.api import acts, jobs, looks
from howdah.web.api.call import Call

CALLS: list[Call] = [*looks.calls.all, *jobs.calls.all, *acts.calls.all]
TAGS = {"looks": "queue", "jobs": "jobs", "acts": "actions"}
_REF = "#/components/schemas/{name}"
_MEANINGS = {
    400: "Something that was asked does not fit.",
    401: "Nobody knows who this is.",
    403: "Not allowed: read-only, from another site, or the database says no.",
    404: "There is no such thing.",
    409: "The job is not in a state for it.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    503: "The database does not answer, or not in time.",
}
ABOUT = (
    "Questions and actions on a howdah queue. Instants are RFC 3339, lengths of time are seconds, "
    "numbers of a payload keep all their digits. Send `Authorization: Bearer` with the token that "
    "the dashboard was started with."
)


class Refusal(msgspec.Struct, frozen=True):
    """What went wrong."""

    status: int
    message: str


class Error(msgspec.Struct, frozen=True):
    """An answer that is none."""

    error: Refusal


@cache
def document() -> dict[str, Any]:
    """Describe every call; `servers` is left to whoever knows where this is served."""
    kinds: list[Any] = [Error]
    for call in CALLS:
        kinds += [kind for kind in (call.answer, call.body) if kind is not None]
    schemas, components = msgspec.json.schema_components(kinds, ref_template=_REF)
    of_kind = {id(kind): schema for kind, schema in zip(kinds, schemas, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for call in CALLS:
        paths.setdefault(call.path, {})[call.method.lower()] = _operation(call, of_kind)
    described: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "howdah", "version": VERSION, "description": ABOUT},
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "responses": {
                str(status): {
                    "description": meaning,
                    "content": _json({"$ref": _REF.format(name="Error")}),
                }
                for status, meaning in _MEANINGS.items()
            },
        },
    }
    return _in_seconds(described)


def tag_of(call: Call) -> str:
    return TAGS[call.does.__module__.rpartition(".")[2]]


def _operation(call: Call, of_kind: dict[int, dict[str, Any]]) -> dict[str, Any]:
    summary, _, more = call.about.partition("\n\n")
    answer: dict[str, Any] = {
        "description": "It worked.",
        "content": _json(of_kind[id(call.answer)]),
    }
    if call.status in (201, 202):
        answer["headers"] = {
            "Location": {"description": "The job.", "schema": {"type": "string"}, "required": True}
        }
    described: dict[str, Any] = {
        "operationId": call.name,
        "tags": [tag_of(call)],
        "summary": " ".join(summary.split()),
        "parameters": [*_path_parameters(call), *_query_parameters(call)],
        "responses": {
            str(call.status): answer,
            **{
                str(status): {"$ref": f"#/components/responses/{status}"}
                for status in call.refusals
            },
        },
    }
    if more:
        described["description"] = more
    if call.body is not None:
        described["requestBody"] = {
            "required": not call.body_optional,
            "content": _json(of_kind[id(call.body)]),
        }
    return described


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _path_parameters(call: Call) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": _inline(kind)}
        for name, kind in call.parts.items()
    ]


def _inline(kind: Any) -> dict[str, Any]:
    """Describe a type on the spot."""
    schema = msgspec.json.schema(kind)
    known: dict[str, Any] = schema.pop("$defs", {})
    return known[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def _query_parameters(call: Call) -> list[dict[str, Any]]:
    described: list[dict[str, Any]] = []
    for name, schema in call.query.fields.items():
        own = dict(schema)
        one: dict[str, Any] = {"name": name, "in": "query", "schema": own}
        if said := own.pop("description", own.get("items", {}).get("description")):
            one["description"] = said
        if "$ref" in own.get("items", {}):
            own["items"] = {"$ref": own["items"]["$ref"].replace("#/$defs/", _REF[:-6])}
        described.append(one)
    return described


def _in_seconds(described: Any) -> Any:
    """Say of lengths of time that they are numbers of seconds: see written.py."""
    if isinstance(described, list):
        return [_in_seconds(one) for one in cast("list[Any]", described)]
    if not isinstance(described, dict):
        return described
    found = cast("dict[str, Any]", described)
    if found.get("format") == "duration":
        return {"type": "number", "description": "seconds"}
    return {name: _in_seconds(one) for name, one in found.items()}
