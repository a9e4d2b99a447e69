"""Results: what happened to each job that `howdah cancel` or `howdah requeue` was given."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple, Self
from uuid import UUID

from howdah import Queue
from howdah.cli import output
from howdah.cli.exit_codes import ExitCode, exit_with
from howdah.errors import JobNotFound
from howdah.states import State


class Results(NamedTuple):
    """The jobs that changed, those that did not, and the ids that name no job."""

    changed: list[UUID]
    unchanged: dict[UUID, State]
    missing: list[UUID]

    @classmethod
    async def collect(cls, queue: Queue, ids: Sequence[UUID], changed: Collection[UUID]) -> Self:
        """Read the state of the jobs that did not change."""
        unchanged: dict[UUID, State] = {}
        missing: list[UUID] = []
        for id in dict.fromkeys(ids):
            if id not in changed:
                try:
                    unchanged[id] = (await queue.get(id)).status
                except JobNotFound:
                    missing.append(id)
        return cls([id for id in dict.fromkeys(ids) if id in changed], unchanged, missing)

    @property
    def exit_code(self) -> ExitCode:
        if self.missing:
            return ExitCode.NOT_FOUND
        return ExitCode.FAILED if self.unchanged else ExitCode.OK


def show_results(results: Results, verb: str, as_json: bool) -> None:
    """Print the results and end the command with their exit code."""
    if as_json:
        output.show_json(
            {verb: results.changed, "left": results.unchanged, "missing": results.missing}
        )
    else:
        for id in results.changed:
            output.show(f"{id} {verb}")
        for id, state in results.unchanged.items():
            output.error(f"{id} is {state}, so it was not {verb}")
        for id in results.missing:
            output.error(str(JobNotFound.with_id(id)))
    exit_with(results.exit_code)
