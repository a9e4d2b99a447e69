"""The jobs in hand: each is in one of four places, and the rest of the slots is free."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from uuid import UUID

from howdah.claim.buffer import Buffer
from howdah.in_hand import BACKLOG, InHand
from howdah.job import Claim
from howdah.outcomes import Complete, Ending, Release
from howdah.states import Verb


@dataclass
class Running:
    claim: Claim


def claim(n: int) -> Claim:
    return Claim(UUID(int=n), "mail", 100, "{}", n, 9, 0.0, 0.0, 0.0)


def in_hand(slots: int = 10, threads: int = 4) -> InHand[Running]:
    return InHand[Running](slots, threads)


def test_leases_cover_all_four_places() -> None:
    held, buffer = in_hand(), Buffer(10)
    buffer.put([claim(1)], now=0.0)
    held.ready.append(buffer)
    held.running[UUID(int=2)] = Running(claim(2))
    held.add_ending(Ending(claim(3), Complete()))
    held.sending = {Verb.COMPLETE: [Ending(claim(4), Complete())]}
    assert held.leases() == {(UUID(int=n), n) for n in range(1, 5)}
    assert held.running_leases() == [(UUID(int=2), 2)]
    assert held.unwritten_leases() == [(UUID(int=3), 3), (UUID(int=4), 4)]


def test_an_abandoned_handler_keeps_its_slot() -> None:
    held = in_hand(slots=3)
    held.running[UUID(int=1)] = Running(claim(1))
    held.abandoned = 1
    assert held.free == 1


def test_the_limit_of_threads_is_never_above_the_slots() -> None:
    held = in_hand(slots=10, threads=4)
    held.in_threads = 3
    assert held.free_in_threads == 1
    held.abandoned = 10
    assert held.free_in_threads == 0
    assert in_hand(slots=2, threads=16).thread_limit == 2


def test_too_many_unwritten_endings_are_a_backlog() -> None:
    held = in_hand()
    for n in range(BACKLOG + 1):
        assert not held.backlogged
        held.add_ending(Ending(claim(n), Complete()))
    assert held.backlogged


def test_only_a_release_puts_jobs_back_in_line() -> None:
    held = in_hand()
    calls: list[bool] = []
    held.on_room = lambda: calls.append(held.line_changed)
    held.written(Verb.COMPLETE, [Ending(claim(1), Complete())])
    held.written(Verb.RELEASE, [Ending(claim(1), Release())])
    assert calls == [False, True]


async def test_waiting_for_endings_ends_with_the_answer_to_the_last_batch() -> None:
    held = in_hand()
    held.add_ending(Ending(claim(1), Complete()))
    waiting = asyncio.ensure_future(held.wait_until_written())
    await held.wait_for_endings()
    held.batch_answered()
    await asyncio.sleep(0)
    assert not waiting.done(), "the ending is not written yet"
    held.endings.clear()
    held.batch_answered()
    await waiting


async def test_waiting_for_endings_ends_when_writing_is_given_up() -> None:
    held = in_hand()
    held.add_ending(Ending(claim(1), Complete()))
    held.give_up_writing()
    await held.wait_until_written()
    held.add_ending(Ending(claim(2), Complete()))
    await held.wait_until_written()
    assert len(held.unwritten_leases()) == 2
