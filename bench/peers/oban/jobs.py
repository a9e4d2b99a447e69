"""Jobs of Oban, in a module that its workers find by name."""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
# (this file runs in the peer's own environment, which does not have our dependencies)

from __future__ import annotations

import asyncio
import os

from oban import job

from bench.call_counter import CALLS_FOLDER, CallCounter

SLEEP = 0.001
_calls = CallCounter(os.environ[CALLS_FOLDER])


@job(queue="default")
async def handle(number: int, rest: str) -> None:
    _calls.handled(number)


@job(queue="default")
def handle_plain(number: int, rest: str) -> None:
    _calls.handled(number)


@job(queue="default")
async def sleep(number: int, rest: str) -> None:
    _calls.handled(number)
    await asyncio.sleep(SLEEP)


@job(queue="default")
async def pickup(number: int, rest: str) -> None:
    _calls.picked_up(number)
