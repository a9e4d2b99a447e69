"""Call: one thing that the API can be asked, declared once.

Comes after   asked.py, written.py
Comes before  looks.py, jobs.py, acts.py, which declare the calls

    @calls.get("/jobs/{id}", also=(404,))
    async def job(desk: Desk, id: UUID) -> JobAnswer: ...

The function is the declaration: `desk` and `who` are given, `query` and `body` are structs that are
read from the request, every other parameter stands in the path. Its docstring is the description.
What a part of the path may be is in its type: a path whose part does not fit is not found.
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

from howdah.web.api.asked import Query, read_body
from howdah.web.api.written import json_answer
from howdah.web.desk import desk_of
from howdah.web.paths import outer, segments
from howdah.web.visitor import who_of

ROOT = "/api/v1"
_GIVEN = ("desk", "who", "query", "body")

Does = Callable[..., Awaitable[Any]]


class Call:
    """One call of the API."""

    def __init__(
        self, method: str, path: str, does: Does, *, status: int, also: tuple[int, ...], name: str
    ) -> None:
        kinds = get_type_hints(does, include_extras=True)
        taken = list(inspect.signature(does).parameters)
        self.method = method
        self.path = path
        self.status = status
        self.name = name
        self.does = does
        self.answer: Any = kinds["return"]
        self.query: Query = Query(kinds.get("query"))
        self.body: type[msgspec.Struct] | None = kinds.get("body")
        self.parts: dict[str, Any] = {name: kinds[name] for name in taken if name not in _GIVEN}
        self._given = [name for name in taken if name in _GIVEN]
        self._also = also

    @property
    def about(self) -> str:
        """What it does, in words."""
        return inspect.getdoc(self.does) or ""

    @property
    def body_optional(self) -> bool:
        fields = () if self.body is None else msgspec.structs.fields(self.body)
        return all(not field.required for field in fields)

    @property
    def refusals(self) -> list[int]:
        """The statuses that this call may be refused with."""
        found = {400, 401, 403, 503, *self._also}
        if self.parts:
            found.add(404)
        if self.body is not None:
            found |= {413, 415}
        return sorted(found)

    async def __call__(self, request: Request) -> Response:
        asked: dict[str, Any] = {}
        query = self.query.read(request)
        for name in self._given:
            match name:
                case "desk":
                    asked[name] = desk_of(request)
                case "who":
                    asked[name] = who_of(request)
                case "query":
                    asked[name] = query
                case _:
                    assert self.body is not None
                    asked[name] = await read_body(request, self.body, self.body_optional)
        said = await self.does(**asked, **request.path_params)
        answer = json_answer(said, self.status)
        if self.status in (201, 202):
            answer.headers["Location"] = outer(request, f"{ROOT}/jobs/{said.id}")
        return answer


class Calls:
    """The calls that one file declares."""

    def __init__(self) -> None:
        self.all: list[Call] = []

    def get(self, path: str, *, also: tuple[int, ...] = ()) -> Callable[[Does], Does]:
        return self._declare("GET", path, 200, also)

    def post(
        self, path: str, *, status: int = 200, also: tuple[int, ...] = (), name: str | None = None
    ) -> Callable[[Does], Does]:
        return self._declare("POST", path, status, also, name)

    def _declare(
        self, method: str, path: str, status: int, also: tuple[int, ...], name: str | None = None
    ) -> Callable[[Does], Does]:
        def declare(does: Does) -> Does:
            named = name or does.__name__
            self.all.append(Call(method, path, does, status=status, also=also, name=named))
            return does

        return declare


class Place(Route):
    """A path of the API, with every call that it has.

    A part of a path is taken as it was sent, so a name may have a slash in it, written %2F.
    """

    def __init__(self, path: str, calls: list[Call]) -> None:
        self._calls = {call.method: call for call in calls}
        self._segments = (ROOT + path).split("/")[1:]
        self._parts = calls[0].parts
        super().__init__(ROOT + path, self._answer, methods=list(self._calls), name=f"api:{path}")

    async def _answer(self, request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        return await self._calls[method](request)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] != "http":
            return Match.NONE, {}
        asked = segments(scope)
        if len(asked) != len(self._segments):
            return Match.NONE, {}
        parts: dict[str, Any] = {}
        for own, said in zip(self._segments, asked, strict=True):
            if not own.startswith("{"):
                if own != said:
                    return Match.NONE, {}
                continue
            try:
                parts[own[1:-1]] = _part(said, self._parts[own[1:-1]])
            except ValueError:
                return Match.NONE, {}
        assert self.methods is not None
        found = Match.FULL if scope["method"] in self.methods else Match.PARTIAL
        return found, {"endpoint": self.endpoint, "path_params": parts}


def _part(said: str, kind: Any) -> Any:
    """Read a part of a path; raises ValueError where it is none of its kind."""
    if kind is UUID:
        return UUID(said)
    if inspect.isclass(kind) and issubclass(kind, Enum):
        return kind(said)
    return msgspec.convert(said, kind)  # its ValidationError is a ValueError
