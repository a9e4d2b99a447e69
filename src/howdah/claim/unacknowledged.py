"""Strays: jobs that the database says we hold, and that we know nothing of.

A claim whose answer got lost has taken jobs all the same. Nobody else would ever take them: the
worker they are held by lives and beats. So after such a claim the worker asks what it holds, and
hands back what it does not know, the attempt not counted. It asks more than once, because a
claim may still be on its way to the server when its connection is given up.

Only ever asked between two claims: what a claim under way has taken would look like a stray.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from howdah.job import Lease
from howdah.safe_logging import log_named
from howdah.states import Verb
from howdah.store import Store
from howdah.store import claim as store_claim
from howdah.store import settle as store_settle

_log = log_named("howdah.claim")

LOOKS = (0.0, 1.0, 4.0, 15.0, 60.0, 240.0)  # seconds after the claim that got no answer


class UnacknowledgedClaims:
    """Looks for a worker's strays while there may be some."""

    def __init__(
        self, store: Store, worker_id: str, known: Callable[[], set[tuple[UUID, int]]]
    ) -> None:
        self._store = store
        self._worker_id = worker_id
        self._known = known
        self._looks: list[float] = []

    def suspect(self, now: float) -> None:
        """A claim got no answer: look now, and again for a while."""
        self._looks = [now + wait for wait in LOOKS]

    def due_in(self, now: float) -> float | None:
        """How many seconds until the next look; None when there is nothing to look for."""
        return max(0.0, self._looks[0] - now) if self._looks else None

    async def look(self) -> int:
        """Hand back what we hold and do not know; returns how many there were."""
        held = await store_claim.held(self._store, self._worker_id)
        known = self._known()  # asked after the database: what has ended since is fenced
        strays = [Lease(id, self._worker_id, n) for id, n in held if (id, n) not in known]
        if strays:
            nothing = [None] * len(strays)
            moved = await store_settle.settle_leases(self._store, Verb.RELEASE, strays, nothing)
            _log.warning("claim.strays released=%d: a claim of theirs got no answer", len(moved))
        if self._looks:
            del self._looks[0]
        return len(strays)
