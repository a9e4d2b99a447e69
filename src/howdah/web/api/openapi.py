"""OpenAPI: the OpenAPI 3.1 document of all endpoints, generated from their types."""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import msgspec

from howdah.version import VERSION
from howdah.web.api import actions, jobs, limits, queries, schedules
from howdah.web.api.endpoint import Endpoint

ENDPOINTS: list[Endpoint] = [
    *queries.endpoints.all,
    *jobs.endpoints.all,
    *limits.endpoints.all,
    *schedules.endpoints.all,
    *actions.endpoints.all,
]
TAGS = {
    "queries": "queue",
    "jobs": "jobs",
    "limits": "limits",
    "schedules": "schedules",
    "actions": "actions",
}
_REF = "#/components/schemas/{name}"
_MEANINGS = {
    400: "A parameter or the body is invalid.",
    401: "Not authenticated.",
    403: "Not allowed: read-only, from another site, or not granted in the database.",
    404: "Not found.",
    409: "The state of the job does not allow the action.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    503: "The database does not answer, or not within the time limit.",
}
DESCRIPTION = (
    "Queries and actions on a howdah queue. Times are RFC 3339, durations are in seconds, numbers "
    "in payloads keep all their digits. Send `Authorization: Bearer` with the token that "
    "the dashboard was started with."
)


class ErrorDetail(msgspec.Struct, frozen=True):
    """The HTTP status, and what to do about the error."""

    status: int
    message: str


class Error(msgspec.Struct, frozen=True):
    """The body of every error response."""

    error: ErrorDetail


@cache
def document() -> dict[str, Any]:
    """Return the document without `servers`, which depends on the request."""
    kinds: list[Any] = [Error]
    for endpoint in ENDPOINTS:
        kinds += [kind for kind in (endpoint.answer, endpoint.body) if kind is not None]
    schemas, components = msgspec.json.schema_components(kinds, ref_template=_REF)
    of_kind = {id(kind): schema for kind, schema in zip(kinds, schemas, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in ENDPOINTS:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, of_kind)
    described: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "howdah", "version": VERSION, "description": DESCRIPTION},
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


def tag_of(endpoint: Endpoint) -> str:
    return TAGS[endpoint.function.__module__.rpartition(".")[2]]


def _operation(endpoint: Endpoint, of_kind: dict[int, dict[str, Any]]) -> dict[str, Any]:
    summary, _, more = endpoint.description.partition("\n\n")
    answer: dict[str, Any] = {
        "description": "It worked.",
        "content": _json(of_kind[id(endpoint.answer)]),
    }
    if endpoint.status in (201, 202):
        answer["headers"] = {
            "Location": {"description": "The job.", "schema": {"type": "string"}, "required": True}
        }
    described: dict[str, Any] = {
        "operationId": endpoint.name,
        "tags": [tag_of(endpoint)],
        "summary": " ".join(summary.split()),
        "parameters": [*_path_parameters(endpoint), *_query_parameters(endpoint)],
        "responses": {
            str(endpoint.status): answer,
            **{
                str(status): {"$ref": f"#/components/responses/{status}"}
                for status in endpoint.error_statuses
            },
        },
    }
    if more:
        described["description"] = more
    if endpoint.body is not None:
        described["requestBody"] = {
            "required": not endpoint.body_optional,
            "content": _json(of_kind[id(endpoint.body)]),
        }
    return described


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _path_parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": _inline(kind)}
        for name, kind in endpoint.parts.items()
    ]


def _inline(kind: Any) -> dict[str, Any]:
    """Return the schema of a type without references."""
    schema = msgspec.json.schema(kind)
    definitions: dict[str, Any] = schema.pop("$defs", {})
    return definitions[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def _query_parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    described: list[dict[str, Any]] = []
    for name, schema in endpoint.query.fields.items():
        own = dict(schema)
        parameter: dict[str, Any] = {"name": name, "in": "query", "schema": own}
        if description := own.pop("description", own.get("items", {}).get("description")):
            parameter["description"] = description
        if "$ref" in own.get("items", {}):
            own["items"] = {"$ref": own["items"]["$ref"].replace("#/$defs/", _REF[:-6])}
        described.append(parameter)
    return described


def _in_seconds(described: Any) -> Any:
    """Describe durations as numbers of seconds: see json_encoding.py."""
    if isinstance(described, list):
        return [_in_seconds(item) for item in cast("list[Any]", described)]
    if not isinstance(described, dict):
        return described
    schema = cast("dict[str, Any]", described)
    if schema.get("format") == "duration":
        return {"type": "number", "description": "seconds"}
    return {name: _in_seconds(item) for name, item in schema.items()}
