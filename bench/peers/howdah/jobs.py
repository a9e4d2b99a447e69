"""Jobs: the functions howdah's worker runs, in a module its child processes can import."""

from __future__ import annotations

import os

from bench.tally import ADDRESS, FOLDER, Tally
from howdah import Queue

queue = Queue(os.environ[ADDRESS])
_tally = Tally(os.environ[FOLDER])


@queue.job
async def handle(number: int, rest: str) -> None:
    _tally.handled(number)


@queue.job(run="thread")
def handle_in_thread(number: int, rest: str) -> None:
    _tally.handled(number)


@queue.job(run="process")
def handle_in_process(number: int, rest: str) -> None:
    _tally.handled(number)


@queue.job
async def pickup(number: int, rest: str) -> None:
    _tally.picked_up(number)
