"""Checker: the promises that every story must keep, with any fault.

It compares the records of the processes (history.py) with the database (move_log.py). It
knows only the contract: the states, the moves, and that a lease is (job, worker, attempt). Each
promise is a function that yields a sentence for each violation; `check` calls them all. Those of
keys, limits, unique keys and expiry are in admit/, those of effects in effects.py.
test_checker.py breaks each promise on purpose.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from tests.stories.admit.expiry import no_attempt_begins_after_its_job_expired
from tests.stories.admit.key_order import (
    jobs_of_an_ordered_key_run_in_the_order_of_enqueueing,
    jobs_of_an_ordered_key_run_one_after_the_other,
)
from tests.stories.admit.rates import no_window_has_more_starts_than_its_rate_allows
from tests.stories.admit.slots import (
    no_job_with_a_limit_begins_unadmitted,
    no_key_has_more_at_work_than_allowed,
    no_limit_has_more_at_work_than_allowed,
)
from tests.stories.admit.unique_keys import (
    a_unique_key_has_one_live_job,
    an_enqueue_that_met_its_job_adds_none,
)
from tests.stories.effects import (
    a_completed_job_has_its_effect_exactly_once,
    an_effect_is_committed_with_the_completion_of_its_job,
)
from tests.stories.history import FAILED, OK, ROLLED_BACK, Run
from tests.stories.move_log import FINISHED, HELD, Move, RowVersion
from tests.stories.order import no_better_job_was_left_waiting, no_better_job_was_skipped
from tests.stories.story_result import StoryResult


def check(result: StoryResult) -> list[str]:
    """Return every promise that was broken, as sentences."""
    return [f"{promise.__name__}: {broken}" for promise in PROMISES for broken in promise(result)]


LONGEST_BACKOFF = 3.0  # seconds: a job that expires before its next attempt may fail


# ── enqueue ───────────────────────────────────────────────────────────────────────────────


def acknowledged_enqueues_are_kept(result: StoryResult) -> Iterator[str]:
    for enqueued in result.history.enqueued:
        jobs = len(result.move_log.tokens.get(enqueued.token, []))
        if enqueued.how == OK and jobs != 1:
            yield f"{enqueued.token} was acknowledged and became {jobs} jobs"


def unknown_enqueues_become_one_job_at_most(result: StoryResult) -> Iterator[str]:
    for enqueued in result.history.enqueued:
        jobs = len(result.move_log.tokens.get(enqueued.token, []))
        if jobs > 1:
            yield f"{enqueued.token} ({enqueued.how}) became {jobs} jobs"


def refused_and_rolled_back_enqueues_leave_no_job(result: StoryResult) -> Iterator[str]:
    ran = {run.job for run in result.history.runs}
    for enqueued in result.history.enqueued:
        if enqueued.how in (FAILED, ROLLED_BACK):
            for job in result.move_log.tokens.get(enqueued.token, []):
                yield f"{enqueued.token} was {enqueued.how}; job {job} exists, ran: {job in ran}"


# ── moves and attempts ──────────────────────────────────────────────────────────────────────────


def every_move_is_one_of_the_contract(result: StoryResult) -> Iterator[str]:
    for moves in result.move_log.moves.values():
        previous: RowVersion | None = None
        for move in moves:
            if move.before is not None and move.before.status in FINISHED and move.after is None:
                continue  # pruned after its retention
            if move.before != previous:
                yield f"job {move.job} was {previous} and then moved from {move.before}"
            if not _legal(move):
                yield f"job {move.job} moved from {move.before} to {move.after}"
            previous = move.after
        job = result.move_log.jobs.get(moves[0].job)
        current = RowVersion(job["status"], job["worker_id"], job["attempts"]) if job else None
        if current != previous:
            yield f"job {moves[0].job} was {previous} after its last move, and is now {current}"


def attempts_are_counted_and_end(result: StoryResult) -> Iterator[str]:
    for move in result.moves:
        if move.after is None:
            continue
        if move.after.attempts > move.max_attempts:
            yield f"job {move.job} is at attempt {move.after.attempts} of {move.max_attempts}"
        if move.after.status == "pending" and move.after.attempts >= move.max_attempts:
            yield f"job {move.job} waits for another attempt after its last"
        expired = move.expires_at is not None and move.expires_at <= move.at + LONGEST_BACKOFF
        if (
            move.after.status == "failed"
            and move.after.attempts < move.max_attempts
            and not expired
        ):
            yield f"job {move.job} failed at attempt {move.after.attempts} of {move.max_attempts}"


def an_attempt_ends_once(result: StoryResult) -> Iterator[str]:
    endings = Counter((move.job, move.before.attempts) for move in result.endings if move.before)
    for (job, attempt), times in endings.items():
        if times > 1:
            yield f"attempt {attempt} of job {job} ended {times} times"
    completions = Counter(
        move.job for move in result.moves if move.after and move.after.status == "completed"
    )
    for job, times in completions.items():
        if times > 1:
            yield f"job {job} was completed {times} times"
    for job, copies in result.move_log.copies.items():
        if copies > 1:
            yield f"job {job} has {copies} rows"


def a_job_is_completed_by_the_holder_of_its_lease(result: StoryResult) -> Iterator[str]:
    """Each handler returns its process id: that process must have held the lease.

    Where a handler returns nothing, its effect has the process: effects.py.
    """
    for id, job in result.move_log.jobs.items():
        if job["status"] == "completed" and job["job_type"] != "write_in_order":
            returned: dict[str, Any] = job["result"] or {}
            ran = (result.history.workers.get(returned.get("pid", 0)), returned.get("attempt"))
            held = (job["worker_id"], job["attempts"])
            if ran != held:
                yield f"job {id} was completed by {ran} while {held} held it"


# ── handlers ──────────────────────────────────────────────────────────────────────────────


def every_run_was_claimed(result: StoryResult) -> Iterator[str]:
    """An attempt runs once per claim. A crash may lose a claim that was not on disk."""
    claims = Counter(
        (move.job, move.after.worker, move.after.attempts)
        for move in result.moves
        if move.after and move.after.status == "claimed"
    )
    runs: Counter[tuple[str, str, int]] = Counter()
    forgotten: Counter[tuple[str, str, int]] = Counter()
    for run in result.history.runs:
        runs[run.job, run.worker, run.attempt] += 1
        forgotten[run.job, run.worker, run.attempt] += result.history.crashed_around(run.began)
    for lease, times in runs.items():
        if times - forgotten[lease] > claims[lease]:
            yield f"{lease} ran {times} times and was claimed {claims[lease]} times"


def attempts_of_a_job_do_not_overlap(result: StoryResult) -> Iterator[str]:
    """Attempt k+1 begins after attempt k ended, or after its worker was given up."""
    taken = {move.lease: move.at for move in result.taken}
    by_job: dict[str, list[Run]] = defaultdict(list)
    for run in result.history.runs:
        by_job[run.job].append(run)
    for job, runs in by_job.items():
        runs.sort(key=lambda run: run.began)
        for run, later in pairwise(runs):
            if run.ended is not None and run.ended <= later.began:
                continue
            given_up = taken.get((job, run.worker, run.attempt))
            if given_up is not None and given_up <= later.began:
                continue
            given_up = taken.get((job, later.worker, later.attempt))
            if later.attempt < run.attempt and given_up is not None and given_up <= run.began:
                continue  # a worker that was silent begins what it does not hold any more
            if not result.history.crashed_around(run.began):
                yield (
                    f"job {job}: attempt {later.attempt} began on {later.worker} while "
                    f"attempt {run.attempt} ran on {run.worker}"
                )


def no_worker_is_given_up_without_a_fault(result: StoryResult) -> Iterator[str]:
    pids = {run.worker: run.pid for run in result.history.runs}
    for move in result.taken:
        job, worker, attempt = move.lease
        if worker is None or worker not in pids:
            continue  # a foreign worker never beats: only time counts
        if move.after is not None and move.after.status == "cancelled":
            continue
        if not result.history.explains_silence(pids[worker], move.at, result.lease):
            yield f"{worker} was given up at attempt {attempt} of {job}, and nothing silenced it"


def a_late_report_changes_nothing_and_is_refused(result: StoryResult) -> Iterator[str]:
    """A worker whose attempt ended has moved the job, or was told that its lease is lost."""
    own = {move.lease for move in result.endings}
    taken = {move.lease for move in result.taken}
    killed = {pid for fault in result.history.faults for pid in fault.kills}
    refused = result.history.reported_lost | {
        (settled.worker, settled.job, settled.attempt)
        for settled in result.history.settled
        if settled.moved is False
    }
    for run in result.history.runs:
        lease = (run.job, run.worker, run.attempt)
        if run.how not in ("returned", "raised") or run.pid in killed:
            continue
        if (run.worker, run.job, run.attempt) in refused:
            continue
        if lease in taken:
            yield f"{lease} reported too late and was not refused"
        elif lease not in own:
            yield f"{lease} ended as '{run.how}', and the job did not move"
    unsure = {(s.job, s.worker, s.attempt) for s in result.history.settled if s.how != OK}
    completed = {m.lease for m in result.endings if m.after and m.after.status == "completed"}
    for settled in result.history.settled:
        lease = (settled.job, settled.worker, settled.attempt)
        if settled.moved and lease not in completed:
            yield f"{lease} was told that it completed its job, and did not"
        if settled.moved is False and lease in completed and lease not in unsure:
            yield f"{lease} was told that it came too late, and did not"


def every_job_ends(result: StoryResult) -> Iterator[str]:
    """The story waited until nothing moved any more: what is left waits for ever."""
    for id, job in result.move_log.jobs.items():
        if job["status"] not in FINISHED:
            yield (
                f"job {id} of {job['job_type']} is {job['status']} for ever, key {job['key']}, "
                f"limit {job['limited_by']}, waits for {job['admission']}"
            )


# ── events and counts ───────────────────────────────────────────────────────────────────────────


def jobs_events_and_counts_agree(result: StoryResult) -> Iterator[str]:
    for id, job in result.move_log.jobs.items():
        numbers = result.move_log.events.get(id, [])
        if numbers != list(range(1, job["events_count"] + 1)):
            yield f"job {id} counts {job['events_count']} events and has {numbers}"
    for id in result.move_log.events.keys() - result.move_log.jobs.keys():
        yield f"events of job {id}, which does not exist"
    if result.move_log.counted != result.move_log.depth:
        yield f"{result.move_log.counted} in jobs, {result.move_log.depth} in queue_depth"


PROMISES = (
    acknowledged_enqueues_are_kept,
    unknown_enqueues_become_one_job_at_most,
    refused_and_rolled_back_enqueues_leave_no_job,
    every_move_is_one_of_the_contract,
    attempts_are_counted_and_end,
    an_attempt_ends_once,
    a_job_is_completed_by_the_holder_of_its_lease,
    every_run_was_claimed,
    attempts_of_a_job_do_not_overlap,
    no_worker_is_given_up_without_a_fault,
    a_late_report_changes_nothing_and_is_refused,
    no_better_job_was_skipped,
    no_better_job_was_left_waiting,
    no_key_has_more_at_work_than_allowed,
    no_limit_has_more_at_work_than_allowed,
    no_job_with_a_limit_begins_unadmitted,
    jobs_of_an_ordered_key_run_one_after_the_other,
    jobs_of_an_ordered_key_run_in_the_order_of_enqueueing,
    no_window_has_more_starts_than_its_rate_allows,
    a_unique_key_has_one_live_job,
    an_enqueue_that_met_its_job_adds_none,
    no_attempt_begins_after_its_job_expired,
    a_completed_job_has_its_effect_exactly_once,
    an_effect_is_committed_with_the_completion_of_its_job,
    every_job_ends,
    jobs_events_and_counts_agree,
)


def _legal(move: Move) -> bool:
    before, after = move.before, move.after
    if before is None:
        return after == RowVersion("pending", None, 0)
    if after is None:
        return False
    same = (after.worker, after.attempts) == (before.worker, before.attempts)
    if before.status == "pending":
        claimed = after.status == "claimed" and after.worker is not None
        return (claimed and after.attempts == before.attempts + 1) or (
            after.status == "cancelled" and same
        )
    if before.status not in HELD:
        return False
    if after.status == "pending":  # retried, or released without counting the attempt
        return after.worker is None and after.attempts in (before.attempts, before.attempts - 1)
    return same and (
        after.status in FINISHED or (before.status, after.status) == ("claimed", "running")
    )
