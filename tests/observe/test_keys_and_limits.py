"""Jobs are found and counted by their key, their limit, and what they wait for."""

from __future__ import annotations

from uuid import UUID

import pytest

from howdah import BadInput, Queue, State, SyncQueue, WaitsFor, observe
from howdah.client.matching import act_on_matching
from howdah.observe import Count, Filter, KeyCount, ids_by_index
from tests.observe.support import HOUR, open_store
from tests.support import Database


async def found(db: Database, wanted: Filter) -> list[UUID]:
    """Return the jobs of a filter; they are as many as are counted, and as the client lists."""
    async with open_store(db) as store:
        ids = [job.id for job in (await observe.page(store, wanted)).jobs]
        assert await observe.count(store, wanted) == Count(len(ids)), wanted
    async with Queue(db.dsn) as queue:
        listed = await queue.jobs(
            status=wanted.status,
            job_type=wanted.job_type,
            key=wanted.key,
            limited_by=wanted.limited_by,
            waits_for=wanted.waits_for,
        )
        assert [job.id for job in listed] == ids, wanted
    return ids


@pytest.mark.parametrize("most", [0, 1, 10_000])
async def test_every_filter_finds_its_jobs_by_an_index_and_without(
    db: Database, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(ids_by_index, "MOST", most)
    db.execute("select howdah.set_limit('api', 1), howdah.set_limit('apis', 1)")
    db.execute("select howdah.set_limit('each', 1, p_per_key => true)")
    db.execute("select howdah.set_type_limit('call', null, p_limit => 'api')")
    db.execute("select howdah.set_type_limit('ask', 1, p_limit => 'each')")
    db.execute("select howdah.set_type_limit('free', null)")
    ended = db.enqueue("mail", key="a")
    db.admit_all()
    db.complete(db.claim("mail"))
    in_line, waits = db.enqueue("mail", key="a"), db.enqueue("mail", key="a")
    other_type, later = db.enqueue("fax", key="a"), db.enqueue("mail", key="b", delay=HOUR)
    plain, free = db.enqueue("mail"), db.enqueue("free", key="a")
    called, calls = db.enqueue("call"), db.enqueue("call", key="b")
    asked, asks = db.enqueue("ask", key="x"), db.enqueue("ask", key="y")
    db.admit_all()
    asks_again = db.enqueue("ask", key="y")
    db.admit_all()
    for wanted, expected in {
        Filter(key="a"): [free, other_type, waits, in_line, ended],
        Filter(key="a", job_type=("mail",)): [waits, in_line, ended],
        Filter(key="a", job_type=("mail", "fax")): [other_type, waits, in_line, ended],
        Filter(key="a", job_type=("free",)): [free],  # its keys have any number of slots
        Filter(key="a", job_type=("mail",), status=(State.PENDING,)): [waits, in_line],
        Filter(key="a", job_type=("mail",), status=(State.COMPLETED,)): [ended],
        Filter(key="a", job_type=("mail",), status=(State.FAILED,)): [],
        Filter(key="a", job_type=("mail",), waits_for=(WaitsFor.KEY,)): [waits],
        Filter(key="a", waits_for=(WaitsFor.KEY,)): [waits],
        Filter(job_type=("mail",), waits_for=(WaitsFor.KEY,)): [waits],
        Filter(waits_for=(WaitsFor.KEY,)): [asks_again, waits],
        Filter(waits_for=(WaitsFor.LIMIT,)): [calls],
        Filter(waits_for=(WaitsFor.KEY, WaitsFor.LIMIT)): [asks_again, calls, waits],
        Filter(waits_for=(WaitsFor.TIME,)): [later],
        Filter(waits_for=(WaitsFor.RETRY,)): [],
        Filter(waits_for=(WaitsFor.KEY,), status=(State.FAILED,)): [],
        Filter(waits_for=(WaitsFor.WORKER,), job_type=("mail",)): [plain, in_line],
        Filter(limited_by="api"): [calls, called],
        Filter(limited_by="api", waits_for=(WaitsFor.LIMIT,)): [calls],
        Filter(limited_by="api", key="b"): [calls],
        Filter(limited_by="ap"): [],
        Filter(limited_by="each"): [asks_again, asks, asked],
        Filter(limited_by="each:y"): [asks_again, asks],
        Filter(limited_by="each", status=(State.COMPLETED,)): [],
    }.items():
        assert await found(db, wanted) == expected, wanted


async def test_pages_of_a_key_have_no_gap_and_no_repeat(db: Database) -> None:
    ids = [db.enqueue("mail", key="a") for _ in range(3)]
    db.admit_all()
    db.complete(db.claim("mail"))
    ids += [db.enqueue("mail", key=key) for key in "abab"]
    wanted = Filter(job_type=("mail",), key="a")
    seen: list[UUID] = []
    before = None
    async with open_store(db) as store:
        while True:
            page = await observe.page(store, wanted, before=before, limit=2)
            seen += [job.id for job in page.jobs]
            if (before := page.before) is None:
                break
    assert seen == [ids[5], ids[3], *reversed(ids[:3])]


async def test_an_action_on_matching_jobs_changes_only_those_of_the_key(db: Database) -> None:
    ids = [db.enqueue("mail", key=key) for key in "abababa"]
    db.admit_all()
    async with Queue(db.dsn) as queue:
        wanted = Filter(job_type=("mail",), key="a", waits_for=(WaitsFor.KEY,))
        done = [
            moved async for moved in act_on_matching(queue.store, wanted, queue.cancel, limit=1)
        ]
    assert sum(page.moved for page in done) == 3
    assert [db.state_of(id) for id in ids] == [
        *(State.PENDING, State.PENDING, State.CANCELLED, State.PENDING),
        *(State.CANCELLED, State.PENDING, State.CANCELLED),
    ]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"key": ""}, "key must have 1 to 200 characters"),
        ({"key": "a\nb"}, "no control characters"),
        ({"limited_by": ""}, "limited_by must be text"),
        ({"waits_for": "slot"}, "waits_for must be one of time, retry, key, limit, worker, not"),
        ({"waits_for": 7}, "waits_for must be a list of what jobs wait for"),
    ],
)
async def test_a_bad_filter_is_refused(
    queue: Queue, wrong: dict[str, object], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        await queue.jobs(**wrong)  # type: ignore[arg-type]


async def test_the_keys_for_which_most_jobs_wait_come_first(db: Database) -> None:
    db.execute("select howdah.set_type_limit('mail', 2)")
    for key, jobs in {"a": 3, "b": 6, "c": 2}.items():
        db.enqueue_many([{"job_type": "mail", "key": key}] * jobs)
    db.enqueue("mail", key="later", delay=HOUR)
    db.enqueue("fax", key="a")
    db.admit_all()
    db.claim("mail", batch=3)
    async with Queue(db.dsn) as queue:
        counted = await queue.key_counts("mail")
        assert [(of.key, of.holding.jobs, of.waiting.jobs) for of in counted.keys] == [
            *(("b", 2, 4), ("a", 2, 1), ("c", 2, 0)),
        ]
        assert (counted.at_once, counted.ordered, counted.limited_by) == (2, False, None)
        assert (counted.more, counted.exhausted) == (False, False)
        first = await queue.key_counts("mail", limit=1)
        assert ([of.key for of in first.keys], first.more) == (["b"], True)
        none = await queue.key_counts("unknown")
        assert (none.keys, none.more, none.at_once) == ([], False, 1)
    with SyncQueue(db.dsn) as sync:
        assert sync.key_counts("mail") == counted


async def test_counts_by_key_are_cut_off_and_say_so(db: Database) -> None:
    db.enqueue_many([{"job_type": "mail", "key": "a"}] * 9)
    db.admit_all()
    async with open_store(db) as store:
        counted = await observe.key_counts(store, "mail", cap=5)
    assert counted.keys == [KeyCount(key="a", holding=Count(1), waiting=Count(5, more=True))]


async def test_a_frequent_key_is_found_among_many_others(db: Database) -> None:
    db.execute("truncate jobs_live")  # the sample is of its pages: an earlier test left empty ones
    db.enqueue_many([{"job_type": "mail", "key": f"a-{n}"} for n in range(50)])
    db.enqueue_many([{"job_type": "mail", "key": "often"}] * 20)
    db.admit_all()
    async with open_store(db) as store:
        counted = await observe.key_counts(store, "mail", keys=10, limit=5)
    assert (counted.keys[0].key, counted.keys[0].waiting) == ("often", Count(19))
    assert (counted.more, counted.exhausted) == (True, True)


async def test_jobs_that_wait_for_keys_and_limits_are_counted_by_type(db: Database) -> None:
    db.execute("select howdah.set_limit('api', 1), howdah.set_limit('each', 1, p_per_key => true)")
    db.execute("select howdah.set_type_limit('call', null, p_limit => 'api')")
    db.execute("select howdah.set_type_limit('ask', 5, p_limit => 'each')")
    db.enqueue_many([{"job_type": "mail", "key": "a"}] * 4)
    db.enqueue_many([{"job_type": "call"}] * 3)
    db.enqueue_many([{"job_type": "ask", "key": key} for key in "xxxyy"])
    db.enqueue("plain")
    db.admit_all()
    async with open_store(db) as store:
        overview = await observe.overview(store)
        few = await observe.overview(store, cap=2)
    assert overview.late == []
    counted = {
        type.job_type: (type.waiting_for_key, type.waiting_for_limit) for type in overview.types
    }
    assert counted == {
        "mail": (Count(3), Count()),
        "call": (Count(), Count(2)),
        "ask": (Count(), Count(3)),
        "plain": (Count(), Count()),
    }
    mail = next(type for type in few.types if type.job_type == "mail")
    assert mail.waiting_for_key.more
