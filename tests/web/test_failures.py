"""Failures: equal errors form a group with its exact count, and are retried as a group."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

import httpx
import pytest
from playwright.async_api import Dialog, Page, expect

from howdah import Handle, JobFailed, Queue, State, observe
from tests.support.waiting import eventually
from tests.web.axe import axe_finds_nothing
from tests.web.serving import Served


async def fail(queue: Queue, job_type: str, *errors: str) -> list[UUID]:
    """Make jobs that have failed with these errors."""
    ids: list[UUID] = []
    for error in errors:
        ids.append((await queue.enqueue(job_type, max_attempts=1)).id)
        (job,) = await queue.claim([job_type], 1, worker_id="someone")
        await queue.fail(job, error)
    return ids


async def all_are(handles: Sequence[Handle[int]], state: State) -> bool:
    return {await handle.status() for handle in handles} == {state}


def groups(html: str) -> list[str]:
    return re.findall(r'<li class="card group(?: retrying)?" data-key="([^"]*)">', html)


async def test_a_failing_group_is_retried_and_completes(
    page: Page, web: Served, queue: Queue
) -> None:
    repaired = False

    @queue.job(max_attempts=1)
    async def letters(n: int) -> int:
        if not repaired:
            raise ConnectionError(f"no answer from 10.0.0.{n}")
        return n

    handles = [await letters.enqueue(n=n) for n in range(3)]
    await fail(queue, "parcels", "ValueError: lost")
    async with queue.worker():
        for handle in handles:
            with pytest.raises(JobFailed):
                await handle.result(timeout=20)
        await page.goto(web.url + "/failures")
        group = page.get_by_role("listitem").filter(has=page.get_by_role("link", name="letters"))
        await expect(group).to_contain_text("no answer from 10.0.0.")
        await axe_finds_nothing(page)

        questions: list[str] = []

        async def agree(dialog: Dialog) -> None:
            questions.append(dialog.message)
            await dialog.accept()

        page.on("dialog", agree)
        repaired = True
        await group.get_by_role("button", name="Retry the group (3)").click()
        await expect(page).to_have_url(re.compile(r"/jobs/[0-9a-f-]{36}$"))
        await eventually(
            lambda: all_are(handles, State.COMPLETED), "the jobs of the group complete"
        )
        assert questions == ["Put 3 failed letters jobs back in line? Each gets one more attempt."]
        await page.goto(web.url + "/failures")
        await expect(page.get_by_role("listitem")).to_have_count(1)
        await expect(page.get_by_role("listitem")).to_contain_text("ValueError: lost")


async def test_errors_that_differ_in_numbers_alone_are_one_group(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    ids = await fail(queue, "letters", "no answer in 3 s", "no answer in 7 s", "<b>lost</b>")
    await fail(queue, "parcels", "no answer in 3 s\n  at line 7")
    html = (await client.get("/failures")).text
    assert groups(html) == [
        "parcels no answer in &lt;n&gt; s",
        "letters &lt;b&gt;lost&lt;/b&gt;",
        "letters no answer in &lt;n&gt; s",
    ]
    assert "3 errors in 4 jobs that failed." in html
    assert "older ones" not in html
    assert "no answer in 7 s" in html  # the newest of its group
    assert f'href="/jobs/{ids[1]}"' in html
    assert "at line 7</pre>" in html
    assert "<b>lost" not in html


async def retry(queue: Queue, job_type: str, *errors: str) -> list[UUID]:
    """Make jobs that have failed once with these errors and wait for their next attempt."""
    ids: list[UUID] = []
    for error in errors:
        ids.append((await queue.enqueue(job_type, max_attempts=3)).id)
        (job,) = await queue.claim([job_type], 1, worker_id="someone")
        await queue.fail(job, error, delay=timedelta(hours=1))
    return ids


async def test_errors_that_are_being_retried_are_shown_apart_from_failed_ones(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    ids = await retry(queue, "letters", "no answer in 3 s", "no <answer> in 7 s")
    html = (await client.get("/failures", params={"type": "letters"})).text
    assert groups(html) == [
        "retrying letters no &lt;answer&gt; in &lt;n&gt; s",
        "retrying letters no answer in &lt;n&gt; s",
    ]
    assert "No letters job has failed for good." in html
    assert "2 errors in 2 jobs whose last attempt failed and that have attempts left." in html
    assert "no &lt;answer&gt; in 7 s" in html
    assert "<answer>" not in html
    assert "Retry the group" not in html  # they are retried by themselves
    assert "in 59m" in html
    links = re.findall(r'href="(/jobs\?[^"]*)"', html)
    jobs_html = (await client.get(links[-1].replace("&amp;", "&"))).text
    assert str(ids[0]) in jobs_html
    assert str(ids[1]) not in jobs_html

    await fail(queue, "letters", "no answer in 9 s")
    both = groups((await client.get("/failures")).text)
    assert both[0] == "letters no answer in &lt;n&gt; s"
    assert len(both) == 3


async def test_the_list_can_be_limited_to_one_type(client: httpx.AsyncClient, queue: Queue) -> None:
    await fail(queue, "letters", "lost")
    await fail(queue, "parcels", "lost")
    html = (await client.get("/failures", params={"type": "letters"})).text
    assert groups(html) == ["letters lost"]
    empty = (await client.get("/failures", params={"type": "nothing"})).text
    assert groups(empty) == []
    assert "No nothing job has failed." in empty
    assert (await client.get("/failures", params={"type": "a\0b"})).status_code == 400


async def test_the_page_shows_how_many_jobs_it_read(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    await queue.store.fetch(
        "insert into howdah.jobs (job_type, status, last_error, completed_at, attempts) "
        "select 'letters', 'failed', 'lost ' || n, now(), 1 from generate_series(1, 2050) as n"
    )
    html = (await client.get("/failures")).text
    assert "1 error in the newest 2,000 jobs that failed; older ones are not included." in html
    assert "Retry the group (2,000+)" in html


async def test_the_link_of_a_group_lists_all_its_jobs(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    ids = await fail(queue, "let/ters", "no & answer in 3 s", "no & answer in 7 s", "other")
    html = (await client.get("/failures")).text
    links = re.findall(r'href="(/jobs\?[^"]*)"', html)
    jobs_html = (await client.get(links[-1].replace("&amp;", "&"))).text
    assert str(ids[0]) in jobs_html
    assert str(ids[1]) in jobs_html
    assert str(ids[2]) not in jobs_html


async def test_a_retry_needs_both_type_and_fingerprint(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    (id,) = await fail(queue, "letters", "lost")
    token = re.search(
        r'name="howdah-csrf-token" content="(\w+)"', (await client.get("/failures")).text
    )
    assert token is not None
    for form in ({"type": "letters"}, {"fingerprint": "lost"}, {}):
        answer = await client.post("/failures/retry", data={"csrf_token": token[1], **form})
        assert answer.status_code == 400
    assert (await queue.get(id)).status is State.FAILED
    assert (await observe.count(queue.store)).jobs == 1


async def test_jobs_without_an_error_are_shown_and_not_retried_as_a_group(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    await queue.enqueue("letters")
    await queue.store.fetch("update howdah.jobs set status = 'failed'")
    html = (await client.get("/failures")).text
    assert "No error was given" in html
    assert "Retry the group" not in html
    assert 'href="/jobs?' not in html  # an empty filter would show more jobs than the group
