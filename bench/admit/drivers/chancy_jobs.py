"""Jobs of Chancy, in a module that its workers find by name."""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
# (this file runs in the peer's own environment, which does not have our dependencies)

from __future__ import annotations

from chancy import job

from bench.admit.handler import Handler

handlers: list[Handler] = []  # of this worker


@job()
async def handle(*, number: int, rest: str, key: str) -> None:
    await handlers[0].handle(number)
