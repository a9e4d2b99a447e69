"""Page: what it looks up and how it is drawn; the same for the first time and for live.

Comes after  desk.py, draw.py
Comes before pages/, live.py

A page's `look` asks `howdah.observe` and returns what its template needs. Its template extends
`base.html` and fills the block `main`; live draws that block again. `job` says which job the page
is about, if it is about one: then news of that job draws it again at once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from howdah.web import draw, flash
from howdah.web.desk import Desk, desk_of

Look = Callable[[Desk, Request], Awaitable[dict[str, Any]]]


class Page(Route):
    """A route that shows a page."""

    def __init__(
        self,
        path: str,
        template: str,
        look: Look,
        *,
        live: bool = True,
        job: Callable[[Request], UUID] | None = None,
    ) -> None:
        self.template: str = template
        self.look: Look = look
        self.live: bool = live
        self.job: Callable[[Request], UUID] | None = job
        super().__init__(path, self._show, methods=["GET"], name=f"page:{path}")

    async def _show(self, request: Request) -> Response:
        request.state.said = flash.read(request)
        found = await self.look(desk_of(request), request)
        response = draw.render(request, self.template, {"live": self.live, **found})
        if request.state.said is not None:
            flash.forget(request, response)
        return response

    async def draw_main(self, request: Request) -> str:
        """Draw the part of the page that changes."""
        found = await self.look(desk_of(request), request)
        return draw.render_block(request, self.template, "main", {"live": self.live, **found})
