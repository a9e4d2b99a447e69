"""The API behaves as its OpenAPI description says, for any request.

Schemathesis reads the description and sends valid and invalid requests. Answers must have the
described statuses and schemas; valid requests are accepted, and invalid ones are refused.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema_rs import validator_for
from playwright.async_api import Page, expect

from howdah import JobContext, Queue
from howdah.web import dashboard
from howdah.web.api.openapi import ENDPOINTS, document
from tests.web.axe import axe_finds_nothing
from tests.web.serving import Served, open_access, served

TOKEN = "a token for tests, 32 characters long"
EXAMPLES = 5  # per call and phase
CONFIG = """
[generation]
allow-x00 = false
"""


async def seed(queue: Queue) -> None:
    """Jobs in every state, with events, errors and names of all kinds."""

    @queue.job(name="mail/daily")
    async def mail(ctx: JobContext, n: int) -> dict[str, int]:
        ctx.emit("sent", {"n": n})
        if n % 3 == 0:
            raise ValueError(f"no route to host {n}")
        return {"n": n}

    drafts = [mail.options(max_attempts=1).draft(n=n) for n in range(30)]
    await queue.enqueue_many(drafts)
    async with queue.worker() as worker:
        await worker.run_until_idle()
    await queue.enqueue_many([queue.draft("report", {"n": n}, priority=n) for n in range(30)])
    await queue.claim(["report"], 3, worker_id="another make")
    await queue.pause("report", "while we look")
    await queue.enqueue("later", delay=3600)


@pytest.mark.timeout(400)  # a quarter of a minute on a machine that does nothing else
async def test_schemathesis_finds_no_error(queue: Queue, tmp_path: Path) -> None:
    await seed(queue)
    config = tmp_path / "schemathesis.toml"
    config.write_text(CONFIG)
    async with served(queue, token=TOKEN) as web:
        running = await asyncio.create_subprocess_exec(
            str(Path(sys.executable).with_name("schemathesis")),
            "--config-file",
            str(config),
            "run",
            f"{web.url}/api/openapi.json",
            "--header",
            f"Authorization: Bearer {TOKEN}",
            "--checks=all",
            "--mode=all",
            "--phases=examples,coverage,fuzzing",
            f"--max-examples={EXAMPLES}",
            "--seed=1",
            "--generation-deterministic",
            "--no-color",
            "--request-timeout=20",
            cwd=tmp_path,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await running.communicate()
    assert running.returncode == 0, output.decode()


async def test_the_description_lists_exactly_the_existing_endpoints(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    described = (await client.get("/api/openapi.json")).json()
    assert described["openapi"] == "3.1.0"
    endpoints = {
        (method.upper(), path)
        for path, operations in described["paths"].items()
        for method in operations
    }
    assert endpoints == {(call.method, call.path) for call in ENDPOINTS}
    names = [call.name for call in ENDPOINTS]
    assert len(set(names)) == len(names)
    for call in ENDPOINTS:
        assert call.description.endswith("."), call.name
    schemas: dict[str, Any] = described["components"]["schemas"]
    for name, schema in schemas.items():
        validator_for({"$ref": f"#/components/schemas/{name}", "components": {"schemas": schemas}})
        assert "duration" not in str(schema)  # lengths of time are seconds
    routes: list[Any] = list(dashboard(queue, access=open_access()).routes)
    served = {route.path for route in routes if route.path.startswith("/api/v1")}
    assert served == {f"/api/v1{call.path}" for call in ENDPOINTS}


async def test_the_page_about_the_api_shows_the_same_description(page: Page, web: Served) -> None:
    await page.goto(f"{web.url}/api")
    for call in ENDPOINTS:
        card = page.locator(f"section#{call.name}")
        await expect(card.get_by_role("heading")).to_have_text(f"{call.method} {call.path}")
    for name in document()["components"]["schemas"]:
        await expect(page.locator(f"section[id='{name}']")).to_have_count(1)
    await page.locator("section#jobs").get_by_role("link", name="Page", exact=True).click()
    await expect(page.locator("section[id='Page']")).to_be_in_viewport()
    await axe_finds_nothing(page)
