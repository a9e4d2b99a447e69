"""States: what a job can be. Written from sql/10_states/states.sql.

Do not edit: `make states` writes this file, `make check` compares it.
"""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    PENDING = "pending"
    CLAIMED = "claimed"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def finished(self) -> bool:
        """Whether a job in this state has ended."""
        return self in (State.COMPLETED, State.FAILED, State.CANCELLED)


class Verb(StrEnum):
    CLAIM = "claim"
    START = "start"
    COMPLETE = "complete"
    RETRY = "retry"
    FAIL = "fail"
    RELEASE = "release"
    HAND_BACK = "hand_back"
    CANCEL = "cancel"
    RECOVER = "recover"
    EXPIRE = "expire"
    REQUEUE = "requeue"


MOVES: frozenset[tuple[Verb, State, State]] = frozenset(
    {
        (Verb.CLAIM, State.PENDING, State.CLAIMED),
        (Verb.START, State.CLAIMED, State.RUNNING),
        (Verb.COMPLETE, State.CLAIMED, State.COMPLETED),
        (Verb.COMPLETE, State.RUNNING, State.COMPLETED),
        (Verb.RETRY, State.CLAIMED, State.PENDING),
        (Verb.RETRY, State.RUNNING, State.PENDING),
        (Verb.RETRY, State.CLAIMED, State.FAILED),
        (Verb.RETRY, State.RUNNING, State.FAILED),
        (Verb.FAIL, State.CLAIMED, State.FAILED),
        (Verb.FAIL, State.RUNNING, State.FAILED),
        (Verb.RELEASE, State.CLAIMED, State.PENDING),
        (Verb.RELEASE, State.RUNNING, State.PENDING),
        (Verb.HAND_BACK, State.CLAIMED, State.PENDING),
        (Verb.HAND_BACK, State.RUNNING, State.PENDING),
        (Verb.HAND_BACK, State.CLAIMED, State.FAILED),
        (Verb.HAND_BACK, State.RUNNING, State.FAILED),
        (Verb.CANCEL, State.PENDING, State.CANCELLED),
        (Verb.CANCEL, State.CLAIMED, State.CANCELLED),
        (Verb.CANCEL, State.RUNNING, State.CANCELLED),
        (Verb.RECOVER, State.CLAIMED, State.PENDING),
        (Verb.RECOVER, State.RUNNING, State.PENDING),
        (Verb.RECOVER, State.CLAIMED, State.FAILED),
        (Verb.RECOVER, State.RUNNING, State.FAILED),
        (Verb.EXPIRE, State.PENDING, State.CANCELLED),
        (Verb.REQUEUE, State.FAILED, State.PENDING),
        (Verb.REQUEUE, State.CANCELLED, State.PENDING),
    }
)
