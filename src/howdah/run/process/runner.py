"""Runner: run an attempt in a child process, and return its outcome."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, assert_never

from howdah import payload
from howdah.handler import Handler
from howdah.job import Claim
from howdah.outcomes import Cancel, Complete, Outcome, Retry, Snooze
from howdah.run.outcome_of import outcome_of_failure, outcome_of_timeout, outcome_of_value
from howdah.run.process import protocol
from howdah.run.process.pool import ProcessPool
from howdah.run.process.task import ChildDied
from howdah.run.reports import Reports


class ProcessRunner:
    """Runs attempts in child processes and passes their reports on."""

    def __init__(self, size: int, reports: Reports) -> None:
        self._processes = ProcessPool(size)
        self._reports = reports

    async def run(self, handler: Handler, claim: Claim, timeout: timedelta | None) -> Outcome:
        def report(message: protocol.Progress | protocol.Emit) -> None:
            if isinstance(message, protocol.Progress):
                self._reports.progress(claim, message.percent, message.stage)
            else:
                self._reports.emit(claim, message.kind, payload.read(message.data, "its data"))

        seconds = None if timeout is None else timeout.total_seconds()
        try:
            ending = await self._processes.run(handler, claim, report, seconds)
        except TimeoutError:
            return outcome_of_timeout(handler, claim, "; its process was killed")
        except ChildDied as error:
            return outcome_of_failure(
                f"ChildDied: {error}", None, retry=True, handler=handler, claim=claim
            )
        return _outcome(ending, handler, claim)

    async def close(self) -> None:
        await self._processes.close()


def _outcome(ending: protocol.Ended, handler: Handler, claim: Claim) -> Outcome:
    match ending:
        case protocol.Returned(result):
            return Complete(result)
        case protocol.Raised(line, traceback, retry):
            return outcome_of_failure(line, traceback, retry=retry, handler=handler, claim=claim)
        case protocol.Decided(outcome, reason, after):
            decisions: dict[str, Any] = {
                "Retry": lambda: Retry(reason, after=after),
                "Snooze": lambda: Snooze(after or 0, reason),
                "Cancel": lambda: Cancel(reason),
            }
            return outcome_of_value(decisions[outcome](), handler, claim)
        case _:
            assert_never(ending)
