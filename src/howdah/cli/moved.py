"""Moved: what became of the jobs that a person named, for cancel and requeue."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple, Self
from uuid import UUID

from howdah import Queue
from howdah.cli import ground
from howdah.cli.ground import Exit
from howdah.errors import JobNotFound
from howdah.states import State


class Moved(NamedTuple):
    """The jobs that moved, those that stand as they stood, and those that are not there."""

    moved: list[UUID]
    left: dict[UUID, State]
    missing: list[UUID]

    @classmethod
    async def of(cls, queue: Queue, ids: Sequence[UUID], moved: Collection[UUID]) -> Self:
        """Ask how the jobs stand that did not move."""
        left: dict[UUID, State] = {}
        missing: list[UUID] = []
        for id in dict.fromkeys(ids):
            if id not in moved:
                try:
                    left[id] = (await queue.get(id)).status
                except JobNotFound:
                    missing.append(id)
        return cls([id for id in dict.fromkeys(ids) if id in moved], left, missing)

    @property
    def exit(self) -> Exit:
        if self.missing:
            return Exit.NOT_FOUND
        return Exit.FAILED if self.left else Exit.OK


def show_moved(result: Moved, word: str, as_json: bool) -> None:
    """Print what moved, say why the rest did not, and leave with the code that tells."""
    if as_json:
        ground.show_json({word: result.moved, "left": result.left, "missing": result.missing})
    else:
        for id in result.moved:
            ground.show(f"{id} {word}")
        for id, state in result.left.items():
            ground.complain(f"{id} is {state}, so it was not {word}")
        for id in result.missing:
            ground.complain(f"there is no job {id}")
    ground.leave(result.exit)
