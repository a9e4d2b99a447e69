"""The API: the same queries, actions and refusals as the pages."""

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
from howdah.web.api.openapi import ENDPOINTS
from howdah.web.serve import bind
from tests.support.waiting import eventually

TOKEN = "a token for tests, 32 characters long"
API = "/api/v1"


def api_client(queue: Queue, *, token: str | None = TOKEN, **options: Any) -> httpx.AsyncClient:
    """Return an HTTP client of the API that sends a token."""
    app = dashboard(queue, access=OneTimeLink(), token=TOKEN, **options)
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app),
        base_url="http://localhost",
        headers={} if token is None else {"authorization": f"Bearer {token}"},
    )


@pytest.fixture
async def api(queue: Queue) -> AsyncGenerator[httpx.AsyncClient]:
    async with api_client(queue) as client:
        yield client


async def get(api: httpx.AsyncClient, path: str, **query: Any) -> Any:
    answer = await api.get(API + path, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def post(api: httpx.AsyncClient, path: str, body: Any = None, status: int = 200) -> Any:
    answer = await api.post(API + path, json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def is_refusal(answer: httpx.Response, status: int) -> bool:
    body = answer.json()
    return (
        answer.status_code == status
        and list(body) == ["error"]
        and body["error"]["status"] == status
        and len(body["error"]["message"]) > 5
    )


# ── queries ─────────────────────────────────────────────────────────────────────────────


async def test_the_overview_of_the_queue_can_be_queried(
    api: httpx.AsyncClient, queue: Queue
) -> None:
    await queue.enqueue("mail", priority=7)
    (job_type,) = (await get(api, "/overview"))["types"]
    assert (job_type["job_type"], job_type["waiting"]) == ("mail", {"jobs": 1, "more": False})
    assert job_type["lanes"][0]["priority"] == 7
    assert isinstance(job_type["oldest"], float)  # lengths of time are seconds
    assert (await get(api, "/types"))["types"][0]["job_type"] == "mail"
    assert (await get(api, "/types/mail"))["waiting"]["jobs"] == 1
    assert (await get(api, "/types/mail/why"))["reason"] == "no_worker"
    assert (await get(api, "/health"))["level"] in ("fine", "unknown", "warning", "critical")
    assert (await get(api, "/workers")) == {"workers": []}
    kinds = [problem["kind"] for problem in (await get(api, "/problems"))["problems"]]
    assert "workers" in kinds


async def test_jobs_are_found_by_every_filter(api: httpx.AsyncClient, queue: Queue) -> None:
    old = await queue.enqueue("mail", {"to": "ann", "n": 1}, priority=7)
    (claimed,) = await queue.claim(["mail"], 1, worker_id="w/1")
    await queue.fail(claimed, "No route to host 17", retry=False)
    new = await queue.enqueue("report/daily", {"to": "bob"})
    for query, expected in (
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
        jobs = (await get(api, "/jobs", **query))["jobs"]
        assert [job["id"] for job in jobs] == [str(handle.id) for handle in expected], query
        if "before" not in query:
            assert (await get(api, "/jobs/count", **query))["jobs"] == len(expected), query
    page = await get(api, "/jobs", limit=1)
    assert page["before"] == str(new.id)
    (group,) = (await get(api, "/failures"))["groups"]
    same = await get(api, "/jobs", fingerprint=group["fingerprint"])
    assert [job["id"] for job in same["jobs"]] == [str(old.id)]


async def test_a_job_is_returned_with_its_history_and_its_events(
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
    history = await get(api, f"/jobs/{handle.id}")
    assert history["job"]["status"] == "completed"
    assert history["job"]["data"] == {"word": "hello"}
    assert history["job"]["result"] == "hello"
    assert [span["kind"] for span in history["spans"]][-1] == "running"
    assert [event["data"]["n"] for event in history["events"]] == [0, 1, 2]
    assert history["ran"] >= 0
    later = await get(api, f"/jobs/{handle.id}/events", after=1, limit=1)
    assert [(event["number"], event["data"]["n"]) for event in later["events"]] == [(2, 1)]
    assert (await get(api, f"/jobs/{handle.id}/why"))["reason"] == "completed"


async def test_keys_and_limits_are_shown_counted_and_filtered_by(
    api: httpx.AsyncClient, queue: Queue
) -> None:
    await queue.store.fetchval("select howdah.set_limit('api', 9)")
    await queue.store.fetchval("select howdah.set_type_limit('call', 1, p_limit => 'api')")
    first, second = [await queue.enqueue("call", key="tenant-7") for _ in range(2)]
    for _ in range(2):
        await queue.store.fetch("select * from howdah.admit()")
    job = (await get(api, f"/jobs/{second.id}"))["job"]
    assert (job["key"], job["limited_by"], job["admission"]) == ("tenant-7", "api", "slot")
    assert (job["waits_for"], job["arrival"]) == ("key", (await second.job()).arrival)
    for query, expected in (
        ({"key": "tenant-7", "job_type": "call"}, [second, first]),
        ({"waits_for": ["key", "limit"]}, [second]),
        ({"limited_by": "api", "waits_for": "worker"}, [first]),
    ):
        jobs = (await get(api, "/jobs", **query))["jobs"]
        assert [job["id"] for job in jobs] == [str(handle.id) for handle in expected], query
        assert {job["key"] for job in jobs} == {"tenant-7"}
        assert (await get(api, "/jobs/count", **query))["jobs"] == len(expected), query
    assert is_refusal(await api.get(f"{API}/jobs?waits_for=godot"), 400)
    counted = await get(api, "/types/call/keys")
    assert counted["keys"] == [
        {
            "key": "tenant-7",
            "holding": {"jobs": 1, "more": False},
            "waiting": {"jobs": 1, "more": False},
        }
    ]
    assert (counted["at_once"], counted["limited_by"], counted["more"]) == (1, "api", False)
    assert (await get(api, "/types/call"))["waiting_for_key"]["jobs"] == 1


async def test_numbers_keep_all_their_digits(api: httpx.AsyncClient) -> None:
    body = (
        '{"job_type": "sum", "data": {"big": 9007199254740993123456789, '
        '"fine": 0.12345678901234567890123, "far": 1e400, "half": 0.5}}'
    )
    created = await api.post(
        f"{API}/jobs", content=body, headers={"content-type": "application/json"}
    )
    assert created.status_code == 201, created.text
    assert created.headers["location"] == f"{API}/jobs/{created.json()['id']}"
    body = (await api.get(created.headers["location"])).text
    assert "9007199254740993123456789" in body
    assert "0.12345678901234567890123" in body
    assert "1" + "0" * 400 in body
    assert re.search(r'"half": ?0\.5\b', body)


async def test_a_name_with_a_slash_is_one_part_of_a_path(
    api: httpx.AsyncClient, queue: Queue
) -> None:
    await queue.enqueue("a/why")
    assert (await get(api, "/types/a%2Fwhy"))["job_type"] == "a/why"
    assert (await get(api, "/types/a%2Fwhy/why"))["job_type"] == "a/why"
    assert (await post(api, "/types/a%2Fwhy/pause")) == {"changed": True}
    assert (await get(api, "/types/a%2Fwhy"))["paused"]["paused_by"] == "token"
    assert (await get(api, "/types/a/why"))["job_type"] == "a"


async def test_the_api_works_below_a_prefix(queue: Queue) -> None:
    from starlette.applications import Starlette
    from starlette.routing import Mount

    inner = dashboard(queue, access=OneTimeLink(), token=TOKEN)
    url_to = Starlette(routes=[Mount("/ops/queue", inner)])
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(url_to),
        base_url="http://localhost/ops/queue",
        headers={"authorization": f"Bearer {TOKEN}"},
    ) as api:
        created = await api.post(f"{API}/jobs", json={"job_type": "a/b"})
        assert created.headers["location"] == f"/ops/queue{API}/jobs/{created.json()['id']}"
        assert (await api.get(f"{API}/types/a%2Fb")).json()["job_type"] == "a/b"
        described = (await api.get("/api/openapi.json")).json()
        assert described["servers"] == [{"url": f"/ops/queue{API}"}]


# ── actions ───────────────────────────────────────────────────────────────────────────────


async def test_a_job_is_enqueued_by_the_name_of_its_type(
    api: httpx.AsyncClient, queue: Queue
) -> None:
    body = {"job_type": "mail", "data": {"to": "ann"}, "priority": 7, "max_attempts": 2}
    id = (await post(api, "/jobs", body, 201))["id"]
    job = await queue.get(id)
    assert (job.job_type, job.data, job.priority, job.max_attempts) == (
        "mail",
        {"to": "ann"},
        7,
        2,
    )
    later = (await post(api, "/jobs", {"job_type": "mail", "delay": 60.5}, 201))["id"]
    job = await queue.get(later)
    assert job.run_at is not None
    assert job.run_at - job.created_at == timedelta(seconds=60.5)


async def test_a_payload_is_checked_against_the_registered_function(
    api: httpx.AsyncClient, queue: Queue
) -> None:
    @queue.job(max_attempts=9)
    async def resize(width: int) -> None: ...

    answer = await api.post(f"{API}/jobs", json={"job_type": "resize", "data": {"width": "x"}})
    assert is_refusal(answer, 400)
    id = (await post(api, "/jobs", {"job_type": "resize", "data": {"width": 3}}, 201))["id"]
    assert (await queue.get(id)).max_attempts == 9


async def test_a_bulk_job_cannot_be_enqueued_by_its_name(
    api: httpx.AsyncClient, queue: Queue
) -> None:
    answer = await api.post(f"{API}/jobs", json={"job_type": "howdah.bulk", "data": {}})
    assert is_refusal(answer, 400)
    assert await queue.counts() == {}


async def test_each_action_changes_one_job(api: httpx.AsyncClient, queue: Queue) -> None:
    later = await queue.enqueue("mail", delay=timedelta(hours=1))
    id = later.id
    assert await post(api, f"/jobs/{id}/run-now") == {"id": str(id), "clone_id": None}
    assert await post(api, f"/jobs/{id}/reprioritise", {"priority": 7})
    assert (await queue.get(id)).priority == 7
    await post(api, f"/jobs/{id}/cancel")
    assert (await queue.get(id)).last_error == "cancelled by token"
    await post(api, f"/jobs/{id}/requeue")
    assert await later.status() is State.PENDING
    clone = (await post(api, f"/jobs/{id}/clone"))["clone_id"]
    assert (await queue.get(clone)).job_type == "mail"
    await post(api, f"/jobs/{id}/cancel")
    await post(api, f"/jobs/{id}/delete")
    assert is_refusal(await api.get(f"{API}/jobs/{id}"), 404)


async def test_each_action_changes_a_list_of_jobs(api: httpx.AsyncClient, queue: Queue) -> None:
    ids = [str((await queue.enqueue("mail")).id) for _ in range(2)]
    requested = [*ids, ids[0], str(uuid4())]
    moved = await post(api, "/jobs/reprioritise", {"ids": requested, "priority": 7})
    assert moved == {"asked": 3, "moved": ids, "clones": {}}
    clones = (await post(api, "/jobs/clone", {"ids": ids}))["clones"]
    assert set(clones) == set(ids)
    for action, status in (
        ("cancel", State.CANCELLED),
        ("requeue", State.PENDING),
        ("cancel", State.CANCELLED),
    ):
        assert (await post(api, f"/jobs/{action}", {"ids": requested}))["moved"] == ids
        assert {(await queue.get(id)).status for id in ids} == {status}
    assert (await post(api, "/jobs/run-now", {"ids": ids}))["moved"] == []
    assert (await post(api, "/jobs/delete", {"ids": ids}))["moved"] == ids


async def test_an_action_that_the_state_does_not_allow_is_a_conflict(
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


async def test_a_bulk_action_is_a_job_whose_progress_can_be_queried(
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
    job = (await get(api, f"/jobs/{started['id']}"))["job"]
    assert job["result"] == {"matched": 30, "moved": 30}
    assert (await get(api, "/jobs/count", priority=7))["jobs"] == 30


async def test_a_worker_can_be_drained(api: httpx.AsyncClient, queue: Queue) -> None:
    @queue.job
    async def mail() -> None: ...

    async with queue.worker(worker_id="w/1"):
        assert await post(api, "/workers/w%2F1/drain") == {"changed": True}
        (worker_row,) = (await get(api, "/workers"))["workers"]
        assert (worker_row["id"], worker_row["draining"]) == ("w/1", True)
    assert is_refusal(await api.post(f"{API}/workers/w%2F1/drain"), 404)


async def test_a_type_is_paused_with_a_reason_and_resumed(api: httpx.AsyncClient) -> None:
    assert await post(api, "/types/mail/pause", {"reason": "relay"}) == {"changed": True}
    assert await post(api, "/types/mail/pause") == {"changed": False}
    assert (await get(api, "/types/mail"))["paused"]["reason"] == "relay"
    assert await post(api, "/types/mail/resume") == {"changed": True}
    assert is_refusal(await api.get(f"{API}/types/mail"), 404)


# ── refusals ──────────────────────────────────────────────────────────────────────────────


async def test_an_invalid_query_is_refused(api: httpx.AsyncClient) -> None:
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


async def test_a_filter_without_matches_returns_no_jobs(api: httpx.AsyncClient) -> None:
    for query in (
        {"created_to": "0001-01-01T00:00:00+14:00"},
        {"created_from": "9999-12-31T23:59:59.999-14:00"},
        {"payload": "a=" + "[" * 3000},
        {"payload": "a=1" + "0" * 5000},
    ):
        assert (await get(api, "/jobs", **query))["jobs"] == [], query


DEEP = b'{"job_type": "a", "data": ' + b'{"a":' * 5000 + b"1" + b"}" * 5001


async def test_an_invalid_body_is_refused(api: httpx.AsyncClient, queue: Queue) -> None:
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


async def test_unknown_jobs_types_and_paths_are_not_found(api: httpx.AsyncClient) -> None:
    for path in (
        f"/jobs/{uuid4()}",
        f"/jobs/{uuid4()}/events",
        f"/jobs/{uuid4()}/why",
        "/jobs/not-an-id",
        "/types/unheard-of",
        "/nothing",
    ):
        assert is_refusal(await api.get(API + path), 404), path
    not_allowed = await api.put(f"{API}/jobs/cancel")
    assert is_refusal(not_allowed, 405)
    assert not_allowed.headers["allow"] == "POST"


def _example(path: str) -> str:
    for part, value in {
        "{id}": str(UUID(int=1)),
        "{action}": "cancel",
        "{job_type}": "mail",
        "{worker_id}": "w",
    }.items():
        path = path.replace(part, value)
    return API + path


UNSAFE = [_example(call.path) for call in ENDPOINTS if call.method != "GET"]


async def test_read_only_refuses_every_call_that_acts(queue: Queue) -> None:
    async with api_client(queue, read_only=True) as api:
        for path in UNSAFE:
            answer = await api.post(path, json={})
            assert is_refusal(answer, 403), path
            assert "read-only" in answer.text
        assert (await api.get(f"{API}/jobs")).status_code == 200


async def test_without_a_token_every_call_is_refused(queue: Queue) -> None:
    for token in (None, "another"):
        async with api_client(queue, token=token) as api:
            for call in ENDPOINTS:
                answer = await api.request(call.method, _example(call.path))
                assert is_refusal(answer, 401), call.path
            assert is_refusal(await api.get("/api/openapi.json"), 401)


async def test_a_foreign_page_cannot_act(client: httpx.AsyncClient) -> None:
    """The browser sends the user's cookie, but the origin shows that the page is foreign."""
    html = (await client.get("/")).text
    csrf_token = {
        "x-howdah-csrf-token": html.split('name="howdah-csrf-token" content="')[1].split('"')[0]
    }
    for path in UNSAFE:
        for headers in (
            {"origin": "https://evil.example", **csrf_token},
            {"origin": "null", **csrf_token},
            {"sec-fetch-site": "cross-site", **csrf_token},
            {"origin": "http://localhost"},  # our own pages send the CSRF token too
        ):
            answer = await client.post(path, json={}, headers=headers)
            assert is_refusal(answer, 403), (path, headers)
        ours = await client.post(
            path, json={}, headers={"origin": "http://localhost", **csrf_token}
        )
        assert ours.status_code != 403, path


async def test_a_small_answer_is_sent_without_a_delay() -> None:
    """An answer is sent in parts; with Nagle's algorithm the second part would wait for 40 ms."""
    held: list[bool] = []

    async def hear(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        own: socket.socket = writer.get_extra_info("socket")
        held.append(not own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    with bind("127.0.0.1", 0) as listener:
        server = await asyncio.start_server(hear, sock=listener)
        async with server:
            reader, writer = await asyncio.open_connection(*listener.getsockname())
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
    async with api_client(queue, redact=["token"]) as api:
        answer = await api.get(f"{API}/jobs/{id}")
        assert "ann" in answer.text
        assert "s3cret" not in answer.text
        assert answer.json()["job"]["data"]["nested"] == {"Token": "•••"}
        assert answer.json()["job"]["result"]["Token"] == "•••"
        assert "s3cret" not in (await api.get(f"{API}/jobs/{id}/events")).text
        for payload_filter in ("token=s3cret", 'nested={"Token": "s3cret-data"}'):
            answer = await api.get(f"{API}/jobs", params={"payload": payload_filter})
            assert is_refusal(answer, 400)  # a filter must not reveal a redacted value
    async with api_client(queue) as api:
        assert (await api.get(f"{API}/jobs/{id}")).text.count("s3cret") == 3


async def test_every_action_is_logged_with_its_user(
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
        (message,) = [
            record.getMessage() for record in caplog.records if "web.action" in record.getMessage()
        ]
        assert 'who="token"' in message
        assert line in message


async def test_a_query_beyond_the_time_limit_is_cancelled_in_the_database(
    queue: Queue, dsn: str
) -> None:
    blocking = await asyncpg.connect(dsn)
    try:
        async with (
            api_client(queue, within=timedelta(milliseconds=200)) as api,
            blocking.transaction(),
        ):
            await blocking.execute("lock table howdah.jobs_live in access exclusive mode")
            answer = await api.get(f"{API}/jobs")
            assert is_refusal(answer, 503), answer.text
            assert "0.2 s" in answer.text
            await eventually(lambda: _no_session_waits(blocking))
        async with api_client(queue) as api:
            assert (await api.get(f"{API}/jobs")).status_code == 200
    finally:
        await blocking.close()


async def _no_session_waits(connection: Any) -> bool:
    return not await connection.fetchval(
        "select count(*) from pg_stat_activity where datname = current_database() "
        "and state = 'active' and wait_event_type = 'Lock'"
    )
