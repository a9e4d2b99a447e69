"""The page of a job and the API: its steps, what it waits for, and the button of a signal."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import httpx
import pytest

from howdah import Queue
from howdah.web import dashboard
from tests.support.waiting_jobs import sleeping_job, waiting_job
from tests.web.forms import flash_text, send
from tests.web.serving import open_access
from tests.web.test_api import API, api_client, get, is_refusal, post
from tests.web.test_job import visible_text

HOUR = timedelta(hours=1)


async def test_the_page_shows_the_steps_and_what_the_job_waits_for(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    id = await waiting_job(queue, timeout=HOUR)
    html = (await client.get(f"/jobs/{id}")).text
    text = visible_text(html)
    assert "It waits for the signal approved since " in text
    assert ", until " in text
    assert "the step 'charge'" in text
    assert "took 3.0 s" in text
    assert "4111" not in text, "no result: it may be a secret"
    assert f'action="/jobs/{id}/signal"' in html


async def test_the_page_of_a_sleeping_job_says_until_when(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    id = await sleeping_job(queue, HOUR)
    html = (await client.get(f"/jobs/{id}")).text
    assert "It sleeps until " in visible_text(html)
    assert "/signal" not in html


async def test_the_button_sends_the_signal(client: httpx.AsyncClient, queue: Queue) -> None:
    id = await waiting_job(queue)

    async def click(data: str, name: str = "approved") -> str:
        answer = await send(client, f"/jobs/{id}/signal", [("name", name), ("data", data)])
        return flash_text(answer)

    assert "the data of the signal is not JSON" in await click("{yes")
    assert "the name of a signal must be text" in await click("", name="")
    assert await click('{"by": "ann"}') == "The signal approved was sent. The job goes on."
    data = await queue.store.fetchval("select data from howdah.job_signals")
    assert data == '{"by": "ann"}'
    assert "it is kept" in await click("")
    await queue.cancel(id)
    assert f"job {id} has ended as cancelled" in await click("")


async def test_a_dashboard_that_is_read_only_has_no_button(queue: Queue) -> None:
    id = await waiting_job(queue)
    app = dashboard(queue, access=open_access(), read_only=True)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        assert "/signal" not in (await client.get(f"/jobs/{id}")).text
        answer = await client.post(f"/jobs/{id}/signal", data={"name": "approved"})
        assert answer.status_code == 403
    assert await queue.store.fetchval("select count(*) from howdah.job_signals") == 0


async def test_a_program_sends_a_signal(queue: Queue, caplog: pytest.LogCaptureFixture) -> None:
    id = await waiting_job(queue)
    body = {"name": "approved", "data": [1]}
    url = f"{API}/jobs/{id}/signal"
    async with api_client(queue) as api:
        assert (await get(api, f"/jobs/{id}/why"))["reason"] == "waiting_for_signal"
        with caplog.at_level("INFO", "howdah.web"):
            assert await post(api, f"/jobs/{id}/signal", body) == {"waited": True}
        assert "did=signal" in caplog.text
        assert await post(api, f"/jobs/{id}/signal", {"name": "approved"}) == {"waited": False}
        assert is_refusal(await api.post(url, json={"name": ""}), 400)
        assert is_refusal(await api.post(url, json={"data": 1}), 400)
        assert is_refusal(await api.post(f"{API}/jobs/{uuid4()}/signal", json=body), 404)
        await queue.cancel(id)
        assert is_refusal(await api.post(url, json=body), 409)
