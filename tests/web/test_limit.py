"""The limit: whatever a page or a call asks of the database, it asks within the dashboard's limit.

Every look goes through one door, which has the server keep the limit: see observe/test_look.py.
Here each page and each call is asked once, and nothing of it may reach the database otherwise.
"""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import httpx
import pytest

from howdah import Queue
from howdah.web import dashboard
from howdah.web.api.call import ROOT
from howdah.web.api.described import CALLS
from howdah.web.pages import all_pages
from tests.web.asked import Asked
from tests.web.serving import anybody

LIMIT = timedelta(seconds=17)  # like nobody else's
MORE = {"/jobs/matching": "?action=cancel&error=boom"}
PATHS = [
    *(page.path + MORE.get(page.path, "") for page in all_pages()),
    *(ROOT + call.path for call in CALLS if call.method == "GET"),
    "/jobs/{id}/data.json",
    "/metrics",
]


async def test_every_look_is_made_within_the_limit(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    await queue.enqueue("mail")
    await queue.claim(["mail"], 1, worker_id="w")
    id = (await queue.enqueue("mail")).id
    app = dashboard(queue, access=anybody(), within=LIMIT, read_only=True)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        for path in PATHS:
            with monkeypatch.context() as patch:
                asked = Asked(patch)
                before = queue.store.statements
                answer = await client.get(_example(path, id))
                took = queue.store.statements - before
            assert answer.status_code == 200, (path, answer.text)
            assert asked.limits == {LIMIT}, path
            assert took == len(asked.statements), path


def _example(path: str, id: UUID) -> str:
    for part, value in {
        "{id}": str(id),
        "{job_type:path}": "mail",
        "{job_type}": "mail",
        "{worker_id:path}": "w",
    }.items():
        path = path.replace(part, value)
    return path
