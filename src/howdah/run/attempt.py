"""Attempt: one running job, and what has happened to it so far."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from howdah.handler import Handler
from howdah.job import Claim
from howdah.run.context import JobContext


class Attempt:
    """One running job."""

    __slots__ = (
        "began",
        "claim",
        "context",
        "ended",
        "entered",
        "handler",
        "in_thread",
        "lost",
        "released",
        "started",
        "task",
        "timed_out",
    )

    def __init__(self, claim: Claim, handler: Handler, context: JobContext) -> None:
        self.claim: Claim = claim
        self.handler: Handler = handler
        self.context: JobContext = context
        self.began: float = time.monotonic()
        self.started: bool = False  # whether the database knows that it runs
        self.lost: bool = False
        self.released: bool = False
        self.in_thread: bool = False  # whether it uses one of the threads
        self.timed_out: bool = False
        self.ended: bool = False  # whether its outcome is decided; its code may still run
        self.entered: bool = False  # whether it has begun to run
        self.task: asyncio.Future[Any] | None = None  # can be cancelled; None: it has to wait
