"""Every query of a page or an API call has the time limit of the dashboard.

All queries go through `query.fetch`, which sets the limit: see observe/test_bounded_query.py.
Each page and each call is requested once; no other statement may reach the database.
"""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import httpx
import pytest

from howdah import Queue
from howdah.web import dashboard
from howdah.web.api.endpoint import ROOT
from howdah.web.api.openapi import ENDPOINTS
from howdah.web.pages import all_pages
from tests.web.recorded_queries import RecordedQueries
from tests.web.serving import open_access

LIMIT = timedelta(seconds=17)  # differs from every other limit
MORE = {"/jobs/matching": "?action=cancel&error=boom"}
PATHS = [
    *(page.path + MORE.get(page.path, "") for page in all_pages()),
    *(ROOT + call.path for call in ENDPOINTS if call.method == "GET"),
    "/jobs/{id}/data.json",
    "/metrics",
]


async def test_every_query_has_the_limit(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    await queue.enqueue("mail")
    await queue.claim(["mail"], 1, worker_id="w")
    id = (await queue.enqueue("mail")).id
    await queue.set_limit("api", at_once=1)
    await queue.schedules.set("nightly", queue.draft("mail"), cron="0 3 * * *")
    app = dashboard(queue, access=open_access(), within=LIMIT, read_only=True)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        for path in PATHS:
            with monkeypatch.context() as patch:
                queries = RecordedQueries(patch)
                before = queue.store.statements
                answer = await client.get(_example(path, id))
                took = queue.store.statements - before
            assert answer.status_code == 200, (path, answer.text)
            assert queries.limits == {LIMIT}, path
            assert took == len(queries.statements), path


def _example(path: str, id: UUID) -> str:
    for part, value in {
        "{id}": str(id),
        "{job_type:path}": "mail",
        "{job_type}": "mail",
        "{worker_id:path}": "w",
        "{limit_name:path}": "api",
        "{schedule}": "nightly",
        "{limit}": "api",
    }.items():
        path = path.replace(part, value)
    return path
