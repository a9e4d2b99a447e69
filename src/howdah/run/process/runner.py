"""Runner: run an attempt in a child process, and return its outcome."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any, assert_never

from howdah import payload
from howdah.checks.signals import check_step_name
from howdah.errors import StaleLease
from howdah.handler import Handler
from howdah.job import Claim
from howdah.outcomes import Cancel, Complete, Outcome, Retry, Snooze, Suspend
from howdah.run.outcome_of import outcome_of_failure, outcome_of_timeout, outcome_of_value
from howdah.run.process import protocol
from howdah.run.process.pool import ProcessPool
from howdah.run.process.task import ChildDied, ProcessTask
from howdah.run.reports import Reports
from howdah.run.steps import Answer
from howdah.steps import AwaitSignal, Request, SaveStep
from howdah.text.reasons import reason_of


class ProcessRunner:
    """Runs attempts in child processes and passes their reports on."""

    def __init__(self, size: int, reports: Reports) -> None:
        self._processes = ProcessPool(size)
        self._reports = reports

    async def run(self, handler: Handler, claim: Claim, timeout: timedelta | None) -> Outcome:
        def report(task: ProcessTask, message: protocol.Report) -> None:
            match message:
                case protocol.Progress(percent, stage):
                    self._reports.progress(claim, percent, stage)
                case protocol.Emit(kind, data):
                    self._reports.emit(claim, kind, payload.read(data, "its data"))
                case protocol.Checkpoint(data):
                    self._reports.checkpoint(claim, payload.read(data, "its checkpoint"))
                case protocol.StepRequest(number, request):
                    answer = self._reports.steps.submit(claim, _checked(request))
                    answer.add_done_callback(partial(_send_answer, task, number))

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


def _checked(request: Request) -> Request:
    """Check a request: the child may send any text."""
    if isinstance(request, SaveStep | AwaitSignal):
        check_step_name("the name of a step", request.key.name)
    if isinstance(request, SaveStep):
        result = request.result
        if result is not None:
            result = payload.reencode(result, "the result of a step", limit=payload.MAX_BYTES)
        return SaveStep(
            request.key,
            None if request.function is None else reason_of(request.function),
            result,
            request.began_ago,
            request.lasts,
        )
    return request


def _send_answer(task: ProcessTask, number: int, answer: Answer) -> None:
    """Send the answer to the child; called in the event loop."""
    if task.supervisor is None:
        return
    if (error := answer.exception()) is None:
        task.supervisor.answer(protocol.StepAnswer(number, answer.result()))
    else:
        stale = isinstance(error, StaleLease)
        task.supervisor.answer(protocol.StepAnswer(number, [], reason_of(error), stale))


def _outcome(ending: protocol.Ended, handler: Handler, claim: Claim) -> Outcome:
    match ending:
        case protocol.Returned(result):
            return Complete(result)
        case protocol.Left(blocked):
            return Suspend(tuple(blocked))
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
