"""UnacknowledgedClaims: release the jobs of a claim whose answer was lost.

Such a claim has taken jobs in the database, and this worker does not know them. No other worker
would ever take them: this one lives and beats. So the worker asks the database which jobs it holds,
and releases those that it does not know; the attempt does not count. It asks several times, because
a claim may still be on its way to the server when its connection is closed.

It asks only between two claims: the jobs of a claim that is under way would look unknown, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from uuid import UUID

from howdah.job import Lease
from howdah.safe_logging import log_named
from howdah.states import Verb
from howdah.store import Store
from howdah.store import claim as store_claim
from howdah.store import settle as store_settle

_log = log_named("howdah.claim")

CHECKS = (0.0, 1.0, 4.0, 15.0, 60.0, 240.0)  # seconds after the claim that got no answer


class UnacknowledgedClaims:
    """Looks for unknown jobs of a worker while there may be some."""

    def __init__(
        self, store: Store, worker_id: str, known: Callable[[], set[tuple[UUID, int]]]
    ) -> None:
        self._store = store
        self._worker_id = worker_id
        self._known = known  # the leases that this worker knows
        self._checks: list[float] = []

    def suspect(self) -> None:
        """Note that a claim or a release got no answer: check now, and again for a while."""
        now = time.monotonic()
        self._checks = [now + wait for wait in CHECKS]

    def due_in(self) -> float | None:
        """How many seconds until the next check; None when there is nothing to check."""
        return max(0.0, self._checks[0] - time.monotonic()) if self._checks else None

    async def release_unknown(self) -> int:
        """Release the jobs that the database says we hold and we do not know; returns how many."""
        held = await store_claim.held(self._store, self._worker_id)
        known = self._known()  # asked after the database: the lease protects what ended since
        unknown = [Lease(id, self._worker_id, n) for id, n in held if (id, n) not in known]
        if unknown:
            delays = [None] * len(unknown)
            moved = await store_settle.settle_leases(self._store, Verb.RELEASE, unknown, delays)
            _log.warning("claim.unacknowledged released=%d: their claim got no answer", len(moved))
        if self._checks:
            del self._checks[0]
        return len(unknown)
