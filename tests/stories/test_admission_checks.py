"""The checks of keys, limits and rates, with histories made by hand.

Each case is a history that must be reported, beside one that differs a little and must not be.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.stories.admit.expiry import no_attempt_begins_after_its_job_expired
from tests.stories.admit.key_order import (
    jobs_of_an_ordered_key_run_in_the_order_of_enqueueing,
    jobs_of_an_ordered_key_run_one_after_the_other,
)
from tests.stories.admit.log import (
    FOREVER,
    NO_LIMIT,
    NO_TYPE_RULE,
    Admission,
    AdmissionLog,
    Rule,
    Versions,
)
from tests.stories.admit.rates import no_window_has_more_starts_than_its_rate_allows
from tests.stories.admit.slots import (
    no_job_with_a_limit_begins_unadmitted,
    no_key_has_more_at_work_than_allowed,
    no_limit_has_more_at_work_than_allowed,
)
from tests.stories.admit.unique_keys import a_unique_key_has_one_live_job
from tests.stories.checker import every_job_ends
from tests.stories.history import OK, UNKNOWN, Enqueued, History, Run
from tests.stories.move_log import Move, MoveLog, RowVersion
from tests.stories.story_result import StoryResult

PENDING, CANCELLED = RowVersion("pending", None, 0), RowVersion("cancelled", None, 0)
CLAIMED, COMPLETED = RowVersion("claimed", "worker", 1), RowVersion("completed", "worker", 1)


class Made:
    """A history with jobs of the type `task`, by default with the key `k`."""

    def __init__(self, *rules: Rule) -> None:
        self.history = History()
        self.admission = AdmissionLog(types={"task": Versions([NO_TYPE_RULE, *rules])})
        self._moves: dict[str, list[Move]] = {}
        self._jobs: dict[str, dict[str, Any]] = {}
        self._tokens: dict[str, list[str]] = {}

    def limit(self, *rules: Rule) -> Made:
        self.admission.limits["api"] = Versions([NO_LIMIT, *rules])
        return self

    def job(
        self,
        id: str,
        *,
        made: float = 0.0,
        admitted: float | None = 0.0,
        looked: float | None = None,  # when the transaction began that admitted it
        joined: bool = False,  # it was running when its rule began to limit it
        claimed: float = 1.0,
        began: float | None = None,
        ended: float | None = 2.0,
        lease_ended: float | None = None,
        **columns: Any,
    ) -> None:
        values = {"key": "k", "job_type": "task", "limited_by": None, "unique_key": None}
        self._jobs[id] = values | {"status": "completed", "unique_until": None} | columns
        settled = lease_ended if lease_ended is not None else (ended or FOREVER)
        self._moves[id] = [
            self._move(id, made, None, PENDING),
            self._move(id, claimed, PENDING, CLAIMED),
            self._move(id, settled, CLAIMED, COMPLETED),
        ]
        began = claimed if began is None else began
        self.history.runs.append(Run(id, 1, "worker", 1, began, ended, "returned"))
        if admitted is not None:
            looked = admitted if looked is None else looked
            limited_by = self._jobs[id]["limited_by"]
            waiting = Admission(made, made, False, "slot", limited_by)
            entry = Admission(admitted, looked, joined, "admitted", limited_by)
            self.admission.admissions[id] = [waiting, entry]

    def never_began(self, id: str) -> None:
        """Turn a job into one that was cancelled instead."""
        made, _, ended = self._moves[id]
        self._moves[id] = [made, replace(ended, before=PENDING, after=CANCELLED)]
        self.history.runs = [run for run in self.history.runs if run.job != id]

    def enqueued(self, id: str, asked: float, answered: float, how: str = OK, nth: int = 0) -> None:
        self._tokens[id] = [id]
        self.history.enqueued.append(Enqueued(id, how, asked, answered, pid=1, nth=nth))

    def _move(
        self, id: str, at: float, before: RowVersion | None, after: RowVersion | None
    ) -> Move:
        expires_at = self._jobs[id].get("expires_at")
        return Move(
            *(id, at, at, "1", self._jobs[id]["job_type"], 100, datetime.now(UTC), 3, True),
            expires_at=expires_at,
            before=before,
            after=after,
        )

    @property
    def result(self) -> StoryResult:
        nothing: dict[Any, Any] = defaultdict(int)
        log = MoveLog(
            *(self._moves, self._jobs, nothing, self._tokens, nothing, nothing, nothing),
            admission=self.admission,
        )
        return StoryResult(self.history, log, lease=3.0)


Promise = Callable[[StoryResult], Iterator[str]]


def broken(promise: Promise, made: Made) -> bool:
    return bool(list(promise(made.result)))


# ── slots ───────────────────────────────────────────────────────────────────────────────────────


def test_two_at_work_with_one_slot_are_reported() -> None:
    made = Made(Rule(-1, -1, 1))
    made.job("a", claimed=1, ended=3)
    made.job("b", claimed=2, ended=4, admitted=1.5)
    assert broken(no_key_has_more_at_work_than_allowed, made)


def test_one_after_the_other_is_not_reported() -> None:
    made = Made(Rule(-1, -1, 1))
    made.job("a", claimed=1, ended=2)
    made.job("b", claimed=2, ended=4, admitted=2)
    made.job("other key", key="l", claimed=1, ended=4)
    assert not broken(no_key_has_more_at_work_than_allowed, made)


@pytest.mark.parametrize(("lease_ended", "reported"), [(2.5, False), (3.5, True)])
def test_a_handler_that_goes_on_after_its_lease_was_lost_does_not_count(
    lease_ended: float, reported: bool
) -> None:
    made = Made(Rule(-1, -1, 1))
    made.job("a", claimed=1, ended=5, lease_ended=lease_ended)
    made.job("b", claimed=3, ended=4, admitted=2.6)
    assert broken(no_key_has_more_at_work_than_allowed, made) is reported


def test_a_handler_that_records_no_end_counts_until_its_lease_ended() -> None:
    made = Made(Rule(-1, -1, 1))
    made.job("a", claimed=1, ended=None, lease_ended=3)
    made.job("b", claimed=2, ended=4, admitted=1.5)
    assert broken(no_key_has_more_at_work_than_allowed, made)


def test_an_attempt_whose_claim_a_crash_took_back_does_not_count() -> None:
    made = Made(Rule(-1, -1, 1))
    made.job("a", claimed=1.5, began=1, ended=3)
    made.job("b", claimed=2, ended=4)
    assert not broken(no_key_has_more_at_work_than_allowed, made)


@pytest.mark.parametrize(
    ("looked", "admitted", "reported"),
    [(4, 4, False), (9.9, 9.9, False), (10.5, 11, False), (11, 12, True)],
)
def test_a_lowered_rule_counts_from_when_a_transaction_must_see_it(
    looked: float, admitted: float, reported: bool
) -> None:
    """It was written at 10 and seen at 11. Who began before may still have read the old one."""
    made = Made(Rule(-1, -1, 2), Rule(10, 11, 1))
    made.job("a", claimed=2, ended=30)
    made.job("b", looked=looked, admitted=admitted, claimed=20, ended=30)
    assert broken(no_key_has_more_at_work_than_allowed, made) is reported


def test_after_a_lowered_rule_nobody_is_admitted_until_few_enough_are_left() -> None:
    made = Made(Rule(-1, -1, 3), Rule(10, 11, 2))
    for id in "abc":
        made.job(id, claimed=2, ended=30 if id != "c" else 20)
    assert not broken(no_key_has_more_at_work_than_allowed, made)
    made.job("d", admitted=20, claimed=21, ended=30)
    assert broken(no_key_has_more_at_work_than_allowed, made)


@pytest.mark.parametrize(("admitted", "reported"), [(9, True), (10.5, False)])
def test_a_raised_rule_counts_from_when_it_was_written(admitted: float, reported: bool) -> None:
    made = Made(Rule(-1, -1, 1), Rule(10, 11, 2))
    made.job("a", claimed=2, ended=30)
    made.job("b", admitted=admitted, claimed=20, ended=30)
    assert broken(no_key_has_more_at_work_than_allowed, made) is reported


@pytest.mark.parametrize("joined", [True, False])
def test_jobs_of_two_types_share_a_named_limit(joined: bool) -> None:
    """One that ran already when its type got the limit was not admitted."""
    made = Made(Rule(-1, -1, None, limit_name="api")).limit(Rule(-1, -1, 1))
    made.job("a", key=None, limited_by="api", claimed=1, ended=4)
    made.job(
        *("b",), key=None, job_type="other", limited_by="api", claimed=2, ended=4, joined=joined
    )
    assert broken(no_limit_has_more_at_work_than_allowed, made) is not joined
    assert not broken(no_key_has_more_at_work_than_allowed, made)


@pytest.mark.parametrize("other", ["api:k", "api:l"])
def test_a_limit_per_key_counts_each_key(other: str) -> None:
    made = Made(Rule(-1, -1, None, limit_name="api")).limit(Rule(-1, -1, 1))
    made.job("a", limited_by="api:k", claimed=1, ended=4)
    made.job("b", limited_by=other, claimed=2, ended=4)
    assert broken(no_limit_has_more_at_work_than_allowed, made) is (other == "api:k")


def test_a_job_that_was_never_admitted_is_reported() -> None:
    made = Made(Rule(-1, -1, 1))
    made.job("without a key", key=None, admitted=None)
    made.job("of an unlimited type", job_type="plain", key=None, admitted=None)
    assert not broken(no_job_with_a_limit_begins_unadmitted, made)
    made.job("a", admitted=None)
    assert broken(no_job_with_a_limit_begins_unadmitted, made)


# ── order ───────────────────────────────────────────────────────────────────────────────────────


def ordered() -> Made:
    return Made(Rule(-1, -1, 1, ordered=True))


@pytest.mark.parametrize(("began", "reported"), [(2.9, True), (3.0, False)])
def test_two_at_work_of_an_ordered_key_are_reported_also_without_a_slot_of_their_own(
    began: float, reported: bool
) -> None:
    made = ordered()
    made.job("a", claimed=1, ended=3)
    made.job("b", admitted=None, claimed=1, began=began, ended=4)
    assert broken(jobs_of_an_ordered_key_run_one_after_the_other, made) is reported


@pytest.mark.parametrize(
    ("asked", "how", "reported"), [(2.0, OK, True), (0.5, OK, False), (2.0, UNKNOWN, False)]
)
def test_a_job_that_begins_before_one_that_was_enqueued_first_is_reported(
    asked: float, how: str, reported: bool
) -> None:
    """Enqueues at the same time have no order, and nobody knows when an unknown one was."""
    made = ordered()
    made.job("first", claimed=20, ended=21)
    made.job("second", claimed=10, ended=11)
    made.enqueued("first", 0, 1, how)
    made.enqueued("second", asked, asked + 1)
    promise = jobs_of_an_ordered_key_run_in_the_order_of_enqueueing
    assert broken(promise, made) is reported


def test_the_jobs_of_one_call_have_its_order() -> None:
    made = ordered()
    made.job("first", claimed=20, ended=21)
    made.job("second", claimed=10, ended=11)
    made.enqueued("first", 0, 1, nth=0)
    assert not broken(jobs_of_an_ordered_key_run_in_the_order_of_enqueueing, made)
    made.enqueued("second", 0, 1, nth=1)
    assert broken(jobs_of_an_ordered_key_run_in_the_order_of_enqueueing, made)


def test_a_retry_after_the_next_job_began_is_reported() -> None:
    made = ordered()
    made.job("first", claimed=1, ended=2, lease_ended=30)
    made.job("second", claimed=10, ended=11)
    made.history.runs.append(Run("first", 1, "worker", 1, 20, 21, "returned"))
    made.enqueued("first", 0, 0.1)
    made.enqueued("second", 0.2, 0.3)
    assert broken(jobs_of_an_ordered_key_run_in_the_order_of_enqueueing, made)


# ── rates ───────────────────────────────────────────────────────────────────────────────────────


def started(*times: float, rules: list[Rule], admitted: float | None = None) -> Made:
    made = Made(Rule(-1, -1, None, limit_name="api")).limit(*rules)
    for nth, at in enumerate(times):
        entry = at if admitted is None else admitted
        made.job(f"{nth}", key=None, limited_by="api", admitted=entry, claimed=at, ended=at + 0.5)
    return made


def rate(at: float, per_second: float, burst: int, seen: float | None = None) -> Rule:
    return Rule(at, at if seen is None else seen, None, per_second=per_second, burst=burst)


TEN = rate(-1, 10, 2)


@pytest.mark.parametrize(
    ("times", "reported"),
    [
        ([5, 5, 5.1, 5.2, 5.3], False),  # the burst, and then one per 0.1 s
        ([5, 5, 5.09], True),
        ([5, 5, 9, 9, 9.05], True),
        ([1, 2, 3, 4, 5, 5, 5], True),
        ([5, 5.1, 5.2, 5.3, 5.4, 5.4, 5.4], True),
    ],
)
def test_a_window_with_more_starts_than_its_rate_is_reported(
    times: list[float], reported: bool
) -> None:
    made = started(*times, rules=[TEN])
    assert broken(no_window_has_more_starts_than_its_rate_allows, made) is reported


@pytest.mark.parametrize(
    ("rules", "reported"),
    [
        ([TEN, rate(5, 10, 3)], False),  # a larger burst from 5 on
        ([TEN, rate(7, 10, 3)], True),
        ([rate(-1, 10, 3), rate(5, 10, 2, seen=6.5)], False),  # the smaller one is seen too late
        ([rate(-1, 10, 3), rate(5, 10, 2)], True),
        ([TEN, rate(5, 1000, 2)], False),
    ],
)
def test_the_rule_that_was_valid_then_counts(rules: list[Rule], reported: bool) -> None:
    made = started(6, 6, 6.001, rules=rules)
    assert broken(no_window_has_more_starts_than_its_rate_allows, made) is reported


def test_a_job_keeps_the_burst_that_admitted_it() -> None:
    made = started(6, 6, 6, rules=[rate(-1, 10, 3), rate(5, 10, 1)], admitted=4)
    assert not broken(no_window_has_more_starts_than_its_rate_allows, made)


def test_a_larger_burst_of_the_past_allows_no_more_now() -> None:
    made = started(3, 3, 3, 9, 9, rules=[rate(-1, 10, 3), rate(5, 10, 1)])
    assert broken(no_window_has_more_starts_than_its_rate_allows, made)


# ── unique keys, expiry, the end ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("made_at", "until", "reported"),
    [(5, "ended", True), (8, "ended", False), (5, "started", False), (1, "started", True)],
)
def test_a_unique_key_with_two_live_jobs_is_reported(
    made_at: float, until: str, reported: bool
) -> None:
    made = Made()
    unique: Any = {"unique_key": "order-7", "unique_until": until}
    made.job("a", claimed=2, ended=7, **unique)
    made.job("b", made=made_at, claimed=9, ended=10, **unique)
    assert broken(a_unique_key_has_one_live_job, made) is reported


def test_a_job_that_expired_before_it_began_holds_no_unique_key() -> None:
    made = Made()
    made.job("a", ended=9, unique_key="order-7", expires_at=4)
    made.job("b", made=5, claimed=6, ended=7, unique_key="order-7")
    assert broken(a_unique_key_has_one_live_job, made)
    made.never_began("a")
    assert not broken(a_unique_key_has_one_live_job, made)


@pytest.mark.parametrize(("claimed", "reported"), [(4, False), (4.1, True)])
def test_an_attempt_that_begins_after_the_expiry_is_reported(
    claimed: float, reported: bool
) -> None:
    made = Made()
    made.job("a", claimed=claimed, ended=9, expires_at=4)
    assert broken(no_attempt_begins_after_its_job_expired, made) is reported


def test_a_job_that_is_left_is_reported() -> None:
    made = Made()
    made.job("a")
    assert not broken(every_job_ends, made)
    made.job("b", status="pending", admission="slot")
    assert broken(every_job_ends, made)
