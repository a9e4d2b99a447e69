"""Order: what a bulk job is to do, checked before it is handed over.

Comes after  actions.py
Comes before walk.py    which does it

An order is signed with the dashboard's secret, for the id of its job: whoever may enqueue could
write an order, and only the signature tells that a person gave it.

A clone is not among it: done twice, it would leave twice as many jobs, and a job may always run
twice.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any
from uuid import UUID

import msgspec

from howdah.enqueue import check_priority
from howdah.errors import BadInput
from howdah.observe import Filter
from howdah.states import State
from howdah.web.actions import Action

BULK = "howdah.bulk"  # the type of the jobs
MOVES: dict[Action, tuple[State, ...]] = {
    Action.CANCEL: (State.PENDING, State.CLAIMED, State.RUNNING),
    Action.REQUEUE: (State.FAILED, State.CANCELLED),
    Action.RUN_NOW: (State.PENDING,),
    Action.REPRIORITISE: (State.PENDING,),
    Action.DELETE: (State.COMPLETED, State.FAILED, State.CANCELLED),
}


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for; the payload of a bulk job."""

    action: Action
    filter: Filter
    who: str
    priority: int | None = None

    def __post_init__(self) -> None:
        if self.action not in MOVES:
            raise BadInput(f"{self.action} cannot be done to all jobs that match")
        if (self.priority is None) is (self.action is Action.REPRIORITISE):
            raise BadInput("a priority belongs to reprioritise, and to nothing else")
        if self.priority is not None:
            check_priority(self.priority)

    def payload(self) -> dict[str, Any]:
        """Write it down without what was not asked for."""
        said: dict[str, Any] = msgspec.to_builtins(self)
        said["filter"] = _asked_for(said["filter"])
        return _asked_for(said)

    def signed(self, secret: str, id: UUID) -> dict[str, Any]:
        """Write it down as the payload of this job."""
        return {**self.payload(), "signature": self._signature(secret, id)}

    def check(self, secret: str, id: UUID, signature: str) -> None:
        """Refuse an order that nobody gave in a dashboard with this secret, or not for this job."""
        if not hmac.compare_digest(self._signature(secret, id).encode(), signature.encode()):
            raise BadInput(
                "this order was not given by this dashboard, or it was copied from another job, so "
                "nothing was done; a dashboard with a secret of its own (HOWDAH_WEB_SECRET) knows "
                "its orders also after a restart"
            )

    def _signature(self, secret: str, id: UUID) -> str:
        said = json.dumps([str(id), self.payload()], sort_keys=True)
        return hmac.new(secret.encode(), f"bulk:{said}".encode(), hashlib.sha256).hexdigest()


def _asked_for(said: dict[str, Any]) -> dict[str, Any]:
    """Leave out what lets all through; 0 and an empty text do not."""
    return {name: value for name, value in said.items() if value not in (None, (), [])}


def narrowed(wanted: Filter, action: Action) -> Filter | None:
    """Leave out the states that an action cannot move; None: nothing is left."""
    states = tuple(state for state in MOVES[action] if not wanted.status or state in wanted.status)
    return msgspec.structs.replace(wanted, status=states) if states else None
