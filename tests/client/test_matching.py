"""Acting on all jobs that match: each job comes once, newest first; others are not touched."""

from __future__ import annotations

from uuid import UUID

from howdah import Queue
from howdah.client.matching import act_on_matching
from howdah.observe import Filter


async def test_every_job_comes_once_even_if_it_still_matches(queue: Queue) -> None:
    mails = [(await queue.enqueue("mail")).id for _ in range(5)]
    await queue.enqueue("resize")
    pages: list[list[UUID]] = []

    async def act(ids: list[UUID]) -> list[UUID]:
        pages.append(ids)
        return ids[:1]  # the others were not moved

    mail_filter = Filter(job_type=("mail",))
    results = [page async for page in act_on_matching(queue.store, mail_filter, act, limit=2)]
    assert pages == [mails[:2:-1], mails[2:0:-1], mails[:1]]
    assert [(page.matched, page.moved) for page in results] == [(2, 1), (2, 1), (1, 1)]
    assert [page.before for page in results] == [mails[3], mails[1], None]


async def test_acting_can_continue_before_a_given_id(queue: Queue) -> None:
    ids = [(await queue.enqueue("mail")).id for _ in range(3)]
    seen: list[UUID] = []

    async def act(ids: list[UUID]) -> list[UUID]:
        seen.extend(ids)
        return ids

    async for _ in act_on_matching(queue.store, Filter(), act, before=ids[2]):
        pass
    assert seen == ids[1::-1]


async def test_jobs_of_one_type_can_be_excluded(queue: Queue) -> None:
    mail = (await queue.enqueue("mail")).id
    await queue.enqueue("bulk")
    seen: list[UUID] = []

    async def act(ids: list[UUID]) -> list[UUID]:
        seen.extend(ids)
        return ids

    async for _ in act_on_matching(queue.store, Filter(), act, except_type="bulk"):
        pass
    assert seen == [mail]
