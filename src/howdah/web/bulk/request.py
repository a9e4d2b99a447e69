"""Request: the payload of a bulk job, checked before it is enqueued.

It is signed with the dashboard's secret for the id of its job. Anybody who may enqueue could write
such a payload; only the signature proves that a user of the dashboard sent it.

Clone is not a bulk action: a job may run twice, and a second run would clone all jobs again.
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

BULK = "howdah.bulk"  # the job type
MOVES: dict[Action, tuple[State, ...]] = {
    Action.CANCEL: (State.PENDING, State.CLAIMED, State.RUNNING),
    Action.REQUEUE: (State.FAILED, State.CANCELLED),
    Action.RUN_NOW: (State.PENDING,),
    Action.REPRIORITISE: (State.PENDING,),
    Action.DELETE: (State.COMPLETED, State.FAILED, State.CANCELLED),
}


class BulkRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a bulk job does: its payload."""

    action: Action
    filter: Filter
    who: str
    priority: int | None = None

    def __post_init__(self) -> None:
        if self.action not in MOVES:
            raise BadInput(f"{self.action} is no bulk action: do it to single jobs")
        if (self.priority is None) is (self.action is Action.REPRIORITISE):
            raise BadInput("give a priority with reprioritise, and with no other action")
        if self.priority is not None:
            check_priority(self.priority)

    def payload(self) -> dict[str, Any]:
        """Return the payload without empty fields."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        fields["filter"] = _without_empty(fields["filter"])
        return _without_empty(fields)

    def signed(self, secret: str, id: UUID) -> dict[str, Any]:
        """Return the payload with a signature for this job."""
        return {**self.payload(), "signature": self._signature(secret, id)}

    def check(self, secret: str, id: UUID, signature: str) -> None:
        """Refuse a request that was not signed with this secret for this job."""
        if not hmac.compare_digest(self._signature(secret, id).encode(), signature.encode()):
            raise BadInput(
                "this bulk job was not signed by this dashboard, or was copied from another job, "
                "so nothing was changed: start it again in the dashboard. With HOWDAH_WEB_SECRET "
                "bulk jobs stay valid after a restart"
            )

    def _signature(self, secret: str, id: UUID) -> str:
        text = json.dumps([str(id), self.payload()], sort_keys=True)
        return hmac.new(secret.encode(), f"bulk:{text}".encode(), hashlib.sha256).hexdigest()


def _without_empty(fields: dict[str, Any]) -> dict[str, Any]:
    """Leave out fields that filter nothing; 0 and an empty text do filter."""
    return {name: value for name, value in fields.items() if value not in (None, (), [])}


def narrowed(wanted: Filter, action: Action) -> Filter | None:
    """Narrow a filter to the states that an action can change; None if none is left."""
    states = tuple(state for state in MOVES[action] if not wanted.status or state in wanted.status)
    return msgspec.structs.replace(wanted, status=states) if states else None
