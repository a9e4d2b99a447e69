"""The API answers the same questions and does the same as the pages, and refuses like them."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncGenerator
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import httpx
import pytest

from howdah import JobContext, Queue
from howdah.states import State
from howdah.web import OneTimeLink, dashboard
from howdah.web.api.described import CALLS
from howdah.web.serve import bind
from tests.support.waiting import eventually

TOKEN = "a token for tests, 32 characters long"
API = "/api/v1"


def talking(queue: Queue, *, token: str | None = TOKEN, **options: Any) -> httpx.AsyncClient:
    """HTTP to the API of a queue, as a program with a token."""
    app = dashboard(queue, access=OneTimeLink(), token=TOKEN, **options)
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app),
        base_url="http://localhost",
        headers={} if token is None else {"authorization": f"Bearer {token}"},
    )


@pytest.fixture
async def api(queue: Queue) -> AsyncGenerator[httpx.AsyncClient]:
    async with talking(queue) as client:
        yield client


async def got(api: httpx.AsyncClient, path: str, **query: Any) -> Any:
    answer = await api.get(API + path, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def sent(api: httpx.AsyncClient, path: str, body: Any = None, status: int = 200) -> Any:
    answer = await api.post(API + path, json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def is_refusal(answer: httpx.Response, status: int) -> bool:
    said = answer.json()
    return (
        answer.status_code == status
        and list(said) == ["error"]
        and said["error"]["status"] == status
        and len(said["error"]["message"]) > 5
    )


# ── questions ─────────────────────────────────────────────────────────────────────────────


async def test_the_queue_can_be_seen_as_a_whole(api: httpx.AsyncClient, queue: Queue) -> None:
    await queue.enqueue("mail", priority=7)
    (one,) = (await got(api, "/overview"))["types"]
    assert (one["job_type"], one["waiting"]) == ("mail", {"jobs": 1, "more": False})
    assert one["lanes"][0]["priority"] == 7
    assert isinstance(one["oldest"], float)  # lengths of time are seconds
    assert (await got(api, "/types"))["types"][0]["job_type"] == "mail"
    assert (await got(api, "/types/mail"))["waiting"]["jobs"] == 1
    assert (await got(api, "/types/mail/why"))["reason"] == "nobody_listens"
    assert (await got(api, "/health"))["level"] in ("fine", "unknown", "warning", "critical")
    assert (await got(api, "/workers")) == {"workers": []}
    kinds = [one["kind"] for one in (await got(api, "/problems"))["problems"]]
    assert "workers" in kinds


async def test_jobs_are_found_by_every_filter(api: httpx.AsyncClient, queue: Queue) -> None:
    old = await queue.enqueue("mail", {"to": "ann", "n": 1}, priority=7)
    (claimed,) = await queue.claim(["mail"], 1, worker_id="w/1")
    await queue.fail(claimed, "No route to host 17", retry=False)
    new = await queue.enqueue("report/daily", {"to": "bob"})
    for query, found in (
        ({}, [new, old]),
        ({"status": ["failed", "running"]}, [old]),
        ({"job_type": "report/daily"}, [new]),
        ({"priority": 7}, [old]),
        ({"worker_id": "w/1"}, [old]),
        ({"attempts_from": 1}, [old]),
        ({"attempts_to": 0}, [new]),
        ({"created_from": "2020-01-01T00:00:00Z"}, [new, old]),
        ({"created_to": "2020-01-01T00:00:00+02:00"}, []),
        ({"error": "NO ROUTE"}, [old]),
        ({"payload": "to=bob"}, [new]),
        ({"payload": ["to=ann", "n=1"]}, [old]),
        ({"before": str(new.id)}, [old]),
    ):
        jobs = (await got(api, "/jobs", **query))["jobs"]
        assert [job["id"] for job in jobs] == [str(one.id) for one in found], query
        if "before" not in query:
            assert (await got(api, "/jobs/count", **query))["jobs"] == len(found), query
    page = await got(api, "/jobs", limit=1)
    assert page["before"] == str(new.id)
    (group,) = (await got(api, "/failures"))["groups"]
    same = await got(api, "/jobs", fingerprint=group["fingerprint"])
    assert [job["id"] for job in same["jobs"]] == [str(old.id)]


async def test_a_job_is_told_with_its_life_and_its_events(
    api: httpx.AsyncClient, queue: Queue
) -> None:
    @queue.job
    async def speak(ctx: JobContext, word: str) -> str:
        for n in range(3):
            ctx.emit("said", {"n": n, "word": word})
        return word

    handle = await speak.enqueue(word="hello")
    async with queue.worker() as worker:
        await worker.run_until_idle()
    life = await got(api, f"/jobs/{handle.id}")
    assert life["job"]["status"] == "completed"
    assert life["job"]["data"] == {"word": "hello"}
    assert life["job"]["result"] == "hello"
    assert [span["kind"] for span in life["spans"]][-1] == "running"
    assert [event["data"]["n"] for event in life["events"]] == [0, 1, 2]
    assert life["ran"] >= 0
    later = await got(api, f"/jobs/{handle.id}/events", after=1, limit=1)
    assert [(event["number"], event["data"]["n"]) for event in later["events"]] == [(2, 1)]
    assert (await got(api, f"/jobs/{handle.id}/why"))["reason"] == "completed"


async def test_numbers_keep_all_their_digits(api: httpx.AsyncClient) -> None:
    body = (
        '{"job_type": "sum", "data": {"big": 9007199254740993123456789, '
        '"fine": 0.12345678901234567890123, "far": 1e400, "half": 0.5}}'
    )
    made = await api.post(f"{API}/jobs", content=body, headers={"content-type": "application/json"})
    assert made.status_code == 201, made.text
    assert made.headers["location"] == f"{API}/jobs/{made.json()['id']}"
    told = (await api.get(made.headers["location"])).text
    assert "9007199254740993123456789" in told
    assert "0.12345678901234567890123" in told
    assert "1" + "0" * 400 in told
    assert re.search(r'"half": ?0\.5\b', told)


async def test_a_name_with_a_slash_is_one_part_of_a_path(
    api: httpx.AsyncClient, queue: Queue
) -> None:
    await queue.enqueue("a/why")
    assert (await got(api, "/types/a%2Fwhy"))["job_type"] == "a/why"
    assert (await got(api, "/types/a%2Fwhy/why"))["job_type"] == "a/why"
    assert (await sent(api, "/types/a%2Fwhy/pause")) == {"changed": True}
    assert (await got(api, "/types/a%2Fwhy"))["paused"]["paused_by"] == "token"
    assert (await got(api, "/types/a/why"))["job_type"] == "a"


async def test_it_answers_below_a_prefix(queue: Queue) -> None:
    from starlette.applications import Starlette
    from starlette.routing import Mount

    inner = dashboard(queue, access=OneTimeLink(), token=TOKEN)
    outer = Starlette(routes=[Mount("/ops/queue", inner)])
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(outer),
        base_url="http://localhost/ops/queue",
        headers={"authorization": f"Bearer {TOKEN}"},
    ) as api:
        made = await api.post(f"{API}/jobs", json={"job_type": "a/b"})
        assert made.headers["location"] == f"/ops/queue{API}/jobs/{made.json()['id']}"
        assert (await api.get(f"{API}/types/a%2Fb")).json()["job_type"] == "a/b"
        described = (await api.get("/api/openapi.json")).json()
        assert described["servers"] == [{"url": f"/ops/queue{API}"}]


# ── actions ───────────────────────────────────────────────────────────────────────────────


async def test_a_job_is_handed_over_by_the_name_of_its_type(
    api: httpx.AsyncClient, queue: Queue
) -> None:
    body = {"job_type": "mail", "data": {"to": "ann"}, "priority": 7, "max_attempts": 2}
    id = (await sent(api, "/jobs", body, 201))["id"]
    job = await queue.get(id)
    assert (job.job_type, job.data, job.priority, job.max_attempts) == (
        "mail",
        {"to": "ann"},
        7,
        2,
    )
    later = (await sent(api, "/jobs", {"job_type": "mail", "delay": 60.5}, 201))["id"]
    job = await queue.get(later)
    assert job.run_at is not None
    assert job.run_at - job.created_at == timedelta(seconds=60.5)


async def test_a_payload_is_checked_against_the_function_that_is_known(
    api: httpx.AsyncClient, queue: Queue
) -> None:
    @queue.job(max_attempts=9)
    async def resize(width: int) -> None: ...

    answer = await api.post(f"{API}/jobs", json={"job_type": "resize", "data": {"width": "x"}})
    assert is_refusal(answer, 400)
    id = (await sent(api, "/jobs", {"job_type": "resize", "data": {"width": 3}}, 201))["id"]
    assert (await queue.get(id)).max_attempts == 9


async def test_nobody_hands_over_a_bulk_job_by_its_name(
    api: httpx.AsyncClient, queue: Queue
) -> None:
    answer = await api.post(f"{API}/jobs", json={"job_type": "howdah.bulk", "data": {}})
    assert is_refusal(answer, 400)
    assert await queue.counts() == {}


async def test_each_action_does_what_it_says_to_one_job(
    api: httpx.AsyncClient, queue: Queue
) -> None:
    later = await queue.enqueue("mail", delay=timedelta(hours=1))
    id = later.id
    assert await sent(api, f"/jobs/{id}/run-now") == {"id": str(id), "clone_id": None}
    assert await sent(api, f"/jobs/{id}/reprioritise", {"priority": 7})
    assert (await queue.get(id)).priority == 7
    await sent(api, f"/jobs/{id}/cancel")
    assert (await queue.get(id)).last_error == "cancelled by token"
    await sent(api, f"/jobs/{id}/requeue")
    assert await later.status() is State.PENDING
    clone = (await sent(api, f"/jobs/{id}/clone"))["clone_id"]
    assert (await queue.get(clone)).job_type == "mail"
    await sent(api, f"/jobs/{id}/cancel")
    await sent(api, f"/jobs/{id}/delete")
    assert is_refusal(await api.get(f"{API}/jobs/{id}"), 404)


async def test_each_action_does_what_it_says_to_some_jobs(
    api: httpx.AsyncClient, queue: Queue
) -> None:
    ids = [str((await queue.enqueue("mail")).id) for _ in range(2)]
    asked = [*ids, ids[0], str(uuid4())]
    moved = await sent(api, "/jobs/reprioritise", {"ids": asked, "priority": 7})
    assert moved == {"asked": 3, "moved": ids, "clones": {}}
    clones = (await sent(api, "/jobs/clone", {"ids": ids}))["clones"]
    assert set(clones) == set(ids)
    for action, status in (
        ("cancel", State.CANCELLED),
        ("requeue", State.PENDING),
        ("cancel", State.CANCELLED),
    ):
        assert (await sent(api, f"/jobs/{action}", {"ids": asked}))["moved"] == ids
        assert {(await queue.get(id)).status for id in ids} == {status}
    assert (await sent(api, "/jobs/run-now", {"ids": ids}))["moved"] == []
    assert (await sent(api, "/jobs/delete", {"ids": ids}))["moved"] == ids


async def test_what_is_not_in_a_state_for_it_is_a_conflict(
    api: httpx.AsyncClient, queue: Queue
) -> None:
    handle = await queue.enqueue("mail")
    for path, body in (
        ("requeue", None),
        ("run-now", None),
        ("delete", None),
    ):
        answer = await api.post(f"{API}/jobs/{handle.id}/{path}", json=body)
        assert is_refusal(answer, 409), path
        assert "pending" in answer.text
    assert is_refusal(await api.post(f"{API}/jobs/{uuid4()}/cancel"), 404)


async def test_a_bulk_action_is_a_job_whose_progress_can_be_asked_for(
    api: httpx.AsyncClient, queue: Queue
) -> None:
    await queue.enqueue_many([queue.draft("mail", {"n": n}) for n in range(30)])
    await queue.enqueue("other")
    body = {"priority": 7, "filter": {"job_type": ["mail"]}}
    answer = await api.post(f"{API}/bulk/reprioritise", json=body)
    assert answer.status_code == 202, answer.text
    started = answer.json()
    assert started["matching"] == {"jobs": 30, "more": False}
    assert answer.headers["location"] == f"{API}/jobs/{started['id']}"
    await queue.handle(started["id"]).result(timeout=30)
    told = (await got(api, f"/jobs/{started['id']}"))["job"]
    assert told["result"] == {"matched": 30, "moved": 30}
    assert (await got(api, "/jobs/count", priority=7))["jobs"] == 30


async def test_a_worker_is_asked_to_leave(api: httpx.AsyncClient, queue: Queue) -> None:
    @queue.job
    async def mail() -> None: ...

    async with queue.worker(worker_id="w/1"):
        assert await sent(api, "/workers/w%2F1/drain") == {"changed": True}
        (one,) = (await got(api, "/workers"))["workers"]
        assert (one["id"], one["draining"]) == ("w/1", True)
    assert is_refusal(await api.post(f"{API}/workers/w%2F1/drain"), 404)


async def test_a_type_is_paused_with_a_reason_and_resumed(api: httpx.AsyncClient) -> None:
    assert await sent(api, "/types/mail/pause", {"reason": "relay"}) == {"changed": True}
    assert await sent(api, "/types/mail/pause") == {"changed": False}
    assert (await got(api, "/types/mail"))["paused"]["reason"] == "relay"
    assert await sent(api, "/types/mail/resume") == {"changed": True}
    assert is_refusal(await api.get(f"{API}/types/mail"), 404)


# ── refusals ──────────────────────────────────────────────────────────────────────────────


async def test_a_query_that_does_not_fit_is_told(api: httpx.AsyncClient) -> None:
    for query in (
        "colour=red",
        "status=done",
        "limit=0",
        "limit=1001",
        "limit=ten",
        "limit=1&limit=2",
        "before=here",
        "created_from=yesterday",
        "created_from=2020-01-01T00:00:00",
        "created_from=1700000000",
        "priority=99999999999",
        "payload=nothing",
        "worker_id=%00",
    ):
        answer = await api.get(f"{API}/jobs?{query}")
        assert is_refusal(answer, 400), answer.text
        assert query.partition("=")[0] in answer.json()["error"]["message"]


async def test_a_filter_that_means_nothing_finds_nothing(api: httpx.AsyncClient) -> None:
    for query in (
        {"created_to": "0001-01-01T00:00:00+14:00"},
        {"created_from": "9999-12-31T23:59:59.999-14:00"},
        {"payload": "a=" + "[" * 3000},
        {"payload": "a=1" + "0" * 5000},
    ):
        assert (await got(api, "/jobs", **query))["jobs"] == [], query


DEEP = b'{"job_type": "a", "data": ' + b'{"a":' * 5000 + b"1" + b"}" * 5001


async def test_a_body_that_does_not_fit_is_told(api: httpx.AsyncClient, queue: Queue) -> None:
    for content, kind, status in (
        (b"{", "application/json", 400),
        (b"", "application/json", 400),
        (b"[]", "application/json", 400),
        (b'{"job_type": ""}', "application/json", 400),
        (b'{"job_type": "a", "colour": 1}', "application/json", 400),
        (b'{"job_type": "a", "data": [1]}', "application/json", 400),
        (b'{"job_type": "a", "data": {"x": "\\u0000"}}', "application/json", 400),
        (DEEP, "application/json", 400),
        (b'{"job_type": "a", "delay": -1}', "application/json", 400),
        (b'{"job_type": "\xff"}', "application/json", 400),
        (b'{"job_type": "a"}', "text/plain", 415),
        (b"job_type=a", "application/x-www-form-urlencoded", 415),
        (b'{"job_type": "a", "data": {"x": "' + b"x" * 400_000 + b'"}}', "application/json", 400),
        (b" " * 1_100_000, "application/json", 413),
    ):
        answer = await api.post(f"{API}/jobs", content=content, headers={"content-type": kind})
        assert is_refusal(answer, status), content[:100]
    assert await queue.counts() == {}


async def test_what_does_not_exist_is_not_found(api: httpx.AsyncClient) -> None:
    for path in (
        f"/jobs/{uuid4()}",
        f"/jobs/{uuid4()}/events",
        f"/jobs/{uuid4()}/why",
        "/jobs/not-an-id",
        "/types/unheard-of",
        "/nothing",
    ):
        assert is_refusal(await api.get(API + path), 404), path
    wrong = await api.put(f"{API}/jobs/cancel")
    assert is_refusal(wrong, 405)
    assert wrong.headers["allow"] == "POST"


def _example(path: str) -> str:
    for part, value in {
        "{id}": str(UUID(int=1)),
        "{action}": "cancel",
        "{job_type}": "mail",
        "{worker_id}": "w",
    }.items():
        path = path.replace(part, value)
    return API + path


UNSAFE = [_example(call.path) for call in CALLS if call.method != "GET"]


async def test_read_only_refuses_every_call_that_acts(queue: Queue) -> None:
    async with talking(queue, read_only=True) as api:
        for path in UNSAFE:
            answer = await api.post(path, json={})
            assert is_refusal(answer, 403), path
            assert "read-only" in answer.text
        assert (await api.get(f"{API}/jobs")).status_code == 200


async def test_without_a_token_nothing_is_told_or_done(queue: Queue) -> None:
    for token in (None, "another"):
        async with talking(queue, token=token) as api:
            for call in CALLS:
                answer = await api.request(call.method, _example(call.path))
                assert is_refusal(answer, 401), call.path
            assert is_refusal(await api.get("/api/openapi.json"), 401)


async def test_a_foreign_page_cannot_act(client: httpx.AsyncClient) -> None:
    """Whoever is let in by the browser's own doing: the origin gives the foreign page away."""
    shown = (await client.get("/")).text
    pledge = {"x-howdah-pledge": shown.split('name="howdah-pledge" content="')[1].split('"')[0]}
    for path in UNSAFE:
        for headers in (
            {"origin": "https://evil.example", **pledge},
            {"origin": "null", **pledge},
            {"sec-fetch-site": "cross-site", **pledge},
            {"origin": "http://localhost"},  # a page of ours would carry the pledge
        ):
            answer = await client.post(path, json={}, headers=headers)
            assert is_refusal(answer, 403), (path, headers)
        ours = await client.post(path, json={}, headers={"origin": "http://localhost", **pledge})
        assert ours.status_code != 403, path


async def test_an_answer_is_not_held_back_until_it_is_larger() -> None:
    """Answers go out in parts; one that waited for the other would cost each 40 ms."""
    held: list[bool] = []

    async def hear(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        own: socket.socket = writer.get_extra_info("socket")
        held.append(not own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    with bind("127.0.0.1", 0) as door:
        server = await asyncio.start_server(hear, sock=door)
        async with server:
            reader, writer = await asyncio.open_connection(*door.getsockname())
            await reader.read()
            writer.close()
            await writer.wait_closed()
    assert held == [False]


# ── redaction, audit, time limit ──────────────────────────────────────────────────────────


async def test_redacted_keys_are_shown_nowhere(queue: Queue) -> None:
    @queue.job
    async def login(ctx: JobContext, user: str, nested: dict[str, str]) -> Any:
        ctx.emit("sent", {"headers": [{"TOKEN": "s3cret-event"}]})
        return {"Token": "s3cret-result", "n": 0.12345678901234567890123}

    id = (await queue.enqueue("login", {"user": "ann", "nested": {"Token": "s3cret-data"}})).id
    async with queue.worker() as worker:
        await worker.run_until_idle()
    async with talking(queue, redact=["token"]) as api:
        told = await api.get(f"{API}/jobs/{id}")
        assert "ann" in told.text
        assert "s3cret" not in told.text
        assert told.json()["job"]["data"]["nested"] == {"Token": "•••"}
        assert told.json()["job"]["result"]["Token"] == "•••"
        assert "s3cret" not in (await api.get(f"{API}/jobs/{id}/events")).text
        for asked in ("token=s3cret", 'nested={"Token": "s3cret-data"}'):
            answer = await api.get(f"{API}/jobs", params={"payload": asked})
            assert is_refusal(answer, 400)  # who may not see it may not guess it
    async with talking(queue) as api:
        assert (await api.get(f"{API}/jobs/{id}")).text.count("s3cret") == 3


async def test_every_action_leaves_a_line_that_says_who_did_it(
    api: httpx.AsyncClient, queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "howdah.web")
    id = (await queue.enqueue("mail")).id
    actions: list[tuple[str, Any, str]] = [
        ("/jobs", {"job_type": "mail"}, "did=enqueue"),
        (f"/jobs/{id}/reprioritise", {"priority": 7}, f'did=reprioritise on="{id}" moved="1"'),
        (f"/jobs/{id}/cancel", None, f'did=cancel on="{id}" moved="1"'),
        ("/jobs/cancel", {"ids": [str(id)]}, f'did=cancel on="{id}" moved="0"'),
        ("/bulk/cancel", {"filter": {}}, 'action="cancel" filter="{}"'),
        ("/types/mail/pause", None, 'did=pause on="mail" changed="True"'),
        ("/types/mail/resume", None, 'did=resume on="mail" changed="True"'),
        ("/workers/w/drain", None, 'did=drain on="w" heard="False"'),
    ]
    for path, body, line in actions:
        caplog.clear()
        await api.post(API + path, json=body)
        (said,) = [one.getMessage() for one in caplog.records if "web.action" in one.getMessage()]
        assert 'who="token"' in said
        assert line in said


async def test_a_look_that_takes_too_long_is_given_up_by_the_database_too(
    queue: Queue, dsn: str
) -> None:
    blocking = await asyncpg.connect(dsn)
    try:
        async with (
            talking(queue, within=timedelta(milliseconds=200)) as api,
            blocking.transaction(),
        ):
            await blocking.execute("lock table howdah.jobs_live in access exclusive mode")
            answer = await api.get(f"{API}/jobs")
            assert is_refusal(answer, 503), answer.text
            assert "0.2 s" in answer.text
            await eventually(lambda: _nobody_waits(blocking))
        async with talking(queue) as api:
            assert (await api.get(f"{API}/jobs")).status_code == 200
    finally:
        await blocking.close()


async def _nobody_waits(connection: Any) -> bool:
    return not await connection.fetchval(
        "select count(*) from pg_stat_activity where datname = current_database() "
        "and state = 'active' and wait_event_type = 'Lock'"
    )
