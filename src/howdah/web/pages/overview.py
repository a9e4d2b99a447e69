"""Overview: every type at a glance, problems first."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from howdah import observe
from howdah.web.desk import Desk
from howdah.web.page import Page


async def look(desk: Desk, request: Request) -> dict[str, Any]:
    seen = await observe.overview(desk.store, within=desk.within)
    return {"seen": seen, "now": seen.at, "problems": await observe.problems(desk.store)}


pages = [Page("/", "overview.html", look)]
