"""Endpoint: one path and method of the API, declared by a function.

    @endpoints.get("/jobs/{id}", also=(404,))
    async def job(context: DashboardContext, id: UUID) -> JobHistory: ...

`context` and `who` are passed in. `query` and `body` are structs that are read from the request.
Every other parameter is a part of the path; its type says which values match. A path with another
value is not found. The docstring is the description in the OpenAPI document.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from enum import Enum
from typing import Any, get_type_hints
from uuid import UUID

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Scope

from howdah.web.api.json_encoding import encode_response
from howdah.web.api.params import QueryParams, read_body
from howdah.web.context import context_of
from howdah.web.paths import segments, url_to
from howdah.web.visitor import who_of

ROOT = "/api/v1"
_GIVEN = ("context", "who", "query", "body")

EndpointFunction = Callable[..., Awaitable[Any]]


class Endpoint:
    """One endpoint of the API."""

    def __init__(
        self,
        method: str,
        path: str,
        function: EndpointFunction,
        *,
        status: int,
        also: tuple[int, ...],
        name: str,
    ) -> None:
        kinds = get_type_hints(function, include_extras=True)
        taken = list(inspect.signature(function).parameters)
        self.method = method
        self.path = path
        self.status = status
        self.name = name
        self.function = function
        self.answer: Any = kinds["return"]
        self.query: QueryParams = QueryParams(kinds.get("query"))
        self.body: type[msgspec.Struct] | None = kinds.get("body")
        self.parts: dict[str, Any] = {name: kinds[name] for name in taken if name not in _GIVEN}
        self._given = [name for name in taken if name in _GIVEN]
        self._also = also

    @property
    def description(self) -> str:
        """The docstring of its function."""
        return inspect.getdoc(self.function) or ""

    @property
    def body_optional(self) -> bool:
        fields = () if self.body is None else msgspec.structs.fields(self.body)
        return all(not field.required for field in fields)

    @property
    def error_statuses(self) -> list[int]:
        """The error statuses that this endpoint may answer."""
        statuses = {400, 401, 403, 503, *self._also}
        if self.parts:
            statuses.add(404)
        if self.body is not None:
            statuses |= {413, 415}
        return sorted(statuses)

    async def __call__(self, request: Request) -> Response:
        arguments: dict[str, Any] = {}
        query = self.query.read(request)
        for name in self._given:
            match name:
                case "context":
                    arguments[name] = context_of(request)
                case "who":
                    arguments[name] = who_of(request)
                case "query":
                    arguments[name] = query
                case _:
                    assert self.body is not None
                    arguments[name] = await read_body(request, self.body, self.body_optional)
        result = await self.function(**arguments, **request.path_params)
        response = encode_response(result, self.status)
        if self.status in (201, 202):
            response.headers["Location"] = url_to(request, f"{ROOT}/jobs/{result.id}")
        return response


class Endpoints:
    """The endpoints that one module declares."""

    def __init__(self) -> None:
        self.all: list[Endpoint] = []

    def get(
        self, path: str, *, also: tuple[int, ...] = ()
    ) -> Callable[[EndpointFunction], EndpointFunction]:
        return self._declare("GET", path, 200, also)

    def post(
        self, path: str, *, status: int = 200, also: tuple[int, ...] = (), name: str | None = None
    ) -> Callable[[EndpointFunction], EndpointFunction]:
        return self._declare("POST", path, status, also, name)

    def _declare(
        self, method: str, path: str, status: int, also: tuple[int, ...], name: str | None = None
    ) -> Callable[[EndpointFunction], EndpointFunction]:
        def declare(function: EndpointFunction) -> EndpointFunction:
            named = name or function.__name__
            self.all.append(Endpoint(method, path, function, status=status, also=also, name=named))
            return function

        return declare


class EndpointRoute(Route):
    """A path of the API with all its methods.

    Segments are split before they are decoded, so a name may contain a slash, written %2F.
    """

    def __init__(self, path: str, endpoints: list[Endpoint]) -> None:
        self._endpoints = {endpoint.method: endpoint for endpoint in endpoints}
        self._segments = (ROOT + path).split("/")[1:]
        self._parts = endpoints[0].parts
        super().__init__(
            ROOT + path, self._answer, methods=list(self._endpoints), name=f"api:{path}"
        )

    async def _answer(self, request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        return await self._endpoints[method](request)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] != "http":
            return Match.NONE, {}
        sent = segments(scope)
        if len(sent) != len(self._segments):
            return Match.NONE, {}
        parts: dict[str, Any] = {}
        for own, segment in zip(self._segments, sent, strict=True):
            if not own.startswith("{"):
                if own != segment:
                    return Match.NONE, {}
                continue
            try:
                parts[own[1:-1]] = _part(segment, self._parts[own[1:-1]])
            except ValueError:
                return Match.NONE, {}
        assert self.methods is not None
        match = Match.FULL if scope["method"] in self.methods else Match.PARTIAL
        return match, {"endpoint": self.endpoint, "path_params": parts}


def _part(segment: str, kind: Any) -> Any:
    """Convert a segment of a path; raises ValueError if it does not match its type."""
    if kind is UUID:
        return UUID(segment)
    if inspect.isclass(kind) and issubclass(kind, Enum):
        return kind(segment)
    return msgspec.convert(segment, kind)  # its ValidationError is a ValueError
