"""Page: a route that shows a page, for the first load and for live updates.

`load` queries `howdah.observe` and returns the values for the template. The template extends
`base.html` and fills the block `main`; a live update renders only that block. `job` returns the job
that the page is about, if any: events of that job update the page at once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from howdah.web import flash
from howdah.web.context import DashboardContext, context_of
from howdah.web.render import render, render_block

Load = Callable[[DashboardContext, Request], Awaitable[dict[str, Any]]]


class PageRoute(Route):
    """A route that shows a page."""

    def __init__(
        self,
        path: str,
        template: str,
        load: Load,
        *,
        live: bool = True,
        job: Callable[[Request], UUID] | None = None,
    ) -> None:
        self.template: str = template
        self.load: Load = load
        self.live: bool = live
        self.job: Callable[[Request], UUID] | None = job
        super().__init__(path, self._show, methods=["GET"], name=f"page:{path}")

    async def _show(self, request: Request) -> Response:
        request.state.flash = flash.read(request)
        values = await self.load(context_of(request), request)
        response = render(request, self.template, {"live": self.live, **values})
        if request.state.flash is not None:
            flash.forget(request, response)
        return response

    async def render_main(self, request: Request) -> str:
        """Render the part of the page that changes."""
        values = await self.load(context_of(request), request)
        return render_block(request, self.template, "main", {"live": self.live, **values})
