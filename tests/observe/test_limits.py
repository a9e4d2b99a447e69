"""Limits: who holds a slot and who waits, the rules of types, when a rate lets the next in."""

from __future__ import annotations

from datetime import timedelta

import pytest

from howdah import Queue
from howdah.checks.limit_names import UnknownLimit
from howdah.observe import Count, Limits, NamedLimit, limits
from howdah.observe.limits import slot_waits
from tests.observe.support import MINUTE, open_store
from tests.support import Database

pytestmark = pytest.mark.engine


async def read(db: Database, cap: int = 10_000) -> Limits:
    async with open_store(db) as store:
        return await limits(store, cap=cap)


async def read_one(db: Database, cap: int = 10_000, name: str = "api") -> NamedLimit:
    return (await read(db, cap)).limit(name)


def make_limit(db: Database, *, at_once: int | None = None, per_key: bool = False) -> None:
    db.execute("select howdah.set_limit('api', %s, p_per_key => %s)", at_once, per_key)
    db.execute("select howdah.set_type_limit('mail', null, p_limit => 'api')")


async def test_a_limit_shows_who_holds_its_slots_and_who_waits(db: Database) -> None:
    make_limit(db, at_once=3)
    db.enqueue_many([{"job_type": "mail"}] * 8)
    db.enqueue("other")
    db.admit_all()
    (claim,) = db.claim("mail", batch=1)
    limit = await read_one(db)
    assert (limit.admitted, limit.at_work, limit.waiting) == (Count(3), 1, Count(5))
    assert limit.types == ["mail"]
    assert limit.keys is None
    assert limit.in_line_since is not None
    assert limit.waits_since is not None
    db.complete([claim])
    limit = await read_one(db)
    assert (limit.admitted, limit.at_work, limit.waiting) == (Count(3), 0, Count(4))


async def test_more_jobs_than_the_cap_are_said_to_be_more(db: Database) -> None:
    make_limit(db, at_once=12)
    db.enqueue_many([{"job_type": "mail"}] * 30)
    db.admit_all()
    limit = await read_one(db, cap=10)
    assert (limit.admitted, limit.waiting) == (Count(10, True), Count(10, True))
    limit = await read_one(db, cap=18)
    assert (limit.admitted, limit.waiting) == (Count(12), Count(18))


async def test_the_keys_of_a_limit_per_key_are_summed(db: Database) -> None:
    make_limit(db, at_once=1, per_key=True)
    for key in ("a", "a", "a", "b", "b", "c", None):
        db.enqueue("mail", key=key)
    db.execute("select howdah.set_limit('api-2', 1)")  # its name sorts between api and its keys
    db.execute("select howdah.set_type_limit('other', null, p_limit => 'api-2')")
    db.enqueue("other")
    db.admit_all()
    limit = await read_one(db)
    assert (limit.admitted, limit.waiting, limit.keys) == (Count(4), Count(3), Count(4))
    assert (await read_one(db, name="api-2")).admitted == Count(1)
    limit = await read_one(db, cap=30)  # three keys
    assert limit.keys == Count(3, True)
    assert limit.waiting is not None
    assert limit.waiting.more


async def test_an_unused_limit_has_zeros(db: Database) -> None:
    make_limit(db, at_once=3)
    limit = await read_one(db)
    assert (limit.admitted, limit.at_work, limit.waiting) == (Count(), 0, Count())
    assert (limit.in_line_since, limit.waits_since, limit.next_start_at) == (None, None, None)


async def test_a_used_up_rate_says_when_the_next_may_start(db: Database) -> None:
    db.execute("select howdah.set_limit('api', p_rate => 6, p_per => '1 minute', p_burst => 1)")
    db.execute("select howdah.set_type_limit('mail', null, p_limit => 'api')")
    db.enqueue_many([{"job_type": "mail"}] * 3)
    db.admit()
    db.complete(db.claim("mail"))
    db.admit()
    found = await read(db)
    (limit,) = found.limits
    assert limit.per_second == 0.1
    assert limit.next_start_at is not None
    assert timedelta() < limit.next_start_at - found.at <= timedelta(seconds=10)
    db.clock.advance(MINUTE)
    assert (await read_one(db)).next_start_at is None


async def test_the_jobs_of_a_paused_type_are_not_late(db: Database) -> None:
    make_limit(db, at_once=1)
    db.enqueue_many([{"job_type": "mail"}] * 2)
    db.execute("select howdah.pause('mail')")
    db.admit_all()
    limit = await read_one(db)
    assert (limit.admitted, limit.waiting, limit.waits_since) == (Count(0), Count(2), None)


async def test_rules_show_what_waits_for_a_slot_of_its_key(db: Database) -> None:
    db.execute("select howdah.set_limit('api', 1)")
    db.execute("select howdah.set_type_limit('mail', 2, p_limit => 'api', p_by => 'kim')")
    db.execute("select howdah.set_type_limit('book', 1, true)")
    for job_type, key in (("mail", "a"), ("mail", "b"), ("book", "a"), ("other", "a")):
        for _ in range(4):
            db.enqueue(job_type, key=key)
    db.enqueue("book")
    db.admit_all()
    found = await read(db)
    rules = {rule.job_type: rule for rule in found.rules}
    assert list(rules) == ["book", "mail"]
    assert (rules["book"].at_once, rules["book"].ordered, rules["book"].waiting) == (
        1,
        True,
        Count(3),
    )
    assert (rules["mail"].limit, rules["mail"].waiting) == ("api", Count(4))
    assert (rules["mail"].changed_by, rules["mail"].declared) == ("kim", False)
    async with open_store(db) as store:
        waits = {wait.job_type: wait.jobs for wait in await slot_waits(store)}
        assert waits == {"book": Count(3), "mail": Count(4), "other": Count(3)}
        cut = {wait.job_type: wait.jobs for wait in await slot_waits(store, cap=4)}
    assert cut["mail"] == Count(2, True), "of the first four"
    assert cut["book"] == Count(3)


async def test_counts_that_take_too_long_are_missing_and_named(queue: Queue) -> None:
    await queue.store.fetch("select howdah.set_limit('api', 1)")
    await queue.store.fetch("select howdah.set_type_limit('mail', 2)")
    slow = await queue.store.fetch(
        "select format('create or replace function howdah.%I(%s) returns %s "
        "language plpgsql as $f$ begin perform pg_sleep(60); end $f$', proname, "
        "pg_get_function_arguments(oid), pg_get_function_result(oid)) from pg_proc "
        "where proname in ('limit_counts', 'slot_wait_counts')"
    )
    for row in slow:
        await queue.store.fetch(row[0])
    found = await limits(queue.store, within=timedelta(milliseconds=100))
    assert found.late == ["limits", "slots"]
    assert (found.limits[0].waiting, found.limits[0].at_once) == (None, 1)
    assert found.rules[0].waiting is None


async def test_an_unknown_limit_is_refused_with_similar_names(db: Database) -> None:
    make_limit(db, at_once=3)
    db.execute("select howdah.set_limit('openai', 1)")
    with pytest.raises(
        UnknownLimit, match=r"no limit 'opnai' \(did you mean 'openai'\?\); known: 'api'"
    ):
        await read_one(db, name="opnai")
