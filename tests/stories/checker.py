"""Checker: what must hold of a story, whatever was done to it.

It compares what the processes said (history.py) with what the database says (trail.py), and
knows of howdah no more than the contract: the states, the moves between them, that a lease is
(job, worker, attempt). Each promise is one function that yields a sentence per broken promise,
and `check` asks them all. tests/stories/test_checker.py breaks each promise on purpose.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from tests.stories.facts import FINISHED, HELD, Facts
from tests.stories.history import FAILED, OK, ROLLED_BACK, Run
from tests.stories.order import no_better_job_was_left_waiting, no_better_job_was_passed_over
from tests.stories.trail import Move, Stand


def check(facts: Facts) -> list[str]:
    """Return every promise that was broken, as sentences."""
    return [f"{promise.__name__}: {broken}" for promise in PROMISES for broken in promise(facts)]


# ── enqueue ───────────────────────────────────────────────────────────────────────────────


def acknowledged_enqueues_are_kept(facts: Facts) -> Iterator[str]:
    for one in facts.history.enqueued:
        if one.how == OK and (found := len(facts.trail.tokens.get(one.token, []))) != 1:
            yield f"{one.token} was acknowledged and became {found} jobs"


def unknown_enqueues_become_one_job_at_most(facts: Facts) -> Iterator[str]:
    for one in facts.history.enqueued:
        if (found := len(facts.trail.tokens.get(one.token, []))) > 1:
            yield f"{one.token} ({one.how}) became {found} jobs"


def what_was_refused_or_rolled_back_never_was(facts: Facts) -> Iterator[str]:
    ran = {run.job for run in facts.history.runs}
    for one in facts.history.enqueued:
        if one.how in (FAILED, ROLLED_BACK):
            for job in facts.trail.tokens.get(one.token, []):
                yield f"{one.token} was {one.how}, yet job {job} exists, ran: {job in ran}"


# ── the life of a job ─────────────────────────────────────────────────────────────────────


def every_move_is_one_of_the_contract(facts: Facts) -> Iterator[str]:
    for moves in facts.trail.moves.values():
        stood: Stand | None = None
        for move in moves:
            if move.was is not None and move.was.status in FINISHED and move.now is None:
                continue  # forgotten after its retention
            if move.was != stood:
                yield f"job {move.job} stood as {stood} and then moved from {move.was}"
            if not _legal(move):
                yield f"job {move.job} moved from {move.was} to {move.now}"
            stood = move.now
        job = facts.trail.jobs.get(moves[0].job)
        now = Stand(job["status"], job["worker_id"], job["attempts"]) if job else None
        if now != stood:
            yield f"job {moves[0].job} stood as {stood} in the end, and now as {now}"


def attempts_are_counted_and_end(facts: Facts) -> Iterator[str]:
    for move in facts.moves:
        if move.now is None:
            continue
        if move.now.attempts > move.max_attempts:
            yield f"job {move.job} is at attempt {move.now.attempts} of {move.max_attempts}"
        if move.now.status == "pending" and move.now.attempts >= move.max_attempts:
            yield f"job {move.job} waits for another attempt after its last"
        if move.now.status == "failed" and move.now.attempts < move.max_attempts:
            yield f"job {move.job} failed at attempt {move.now.attempts} of {move.max_attempts}"


def an_attempt_ends_once(facts: Facts) -> Iterator[str]:
    endings = Counter((move.job, move.was.attempts) for move in facts.endings if move.was)
    for (job, attempt), times in endings.items():
        if times > 1:
            yield f"attempt {attempt} of job {job} ended {times} times"
    completions = Counter(
        move.job for move in facts.moves if move.now and move.now.status == "completed"
    )
    for job, times in completions.items():
        if times > 1:
            yield f"job {job} was completed {times} times"
    for job, copies in facts.trail.copies.items():
        if copies > 1:
            yield f"job {job} stands in the table {copies} times"


def a_job_is_completed_by_who_held_it(facts: Facts) -> Iterator[str]:
    """Each handler returns which process it is: that must be the one that held the lease."""
    for id, job in facts.trail.jobs.items():
        if job["status"] == "completed":
            result: dict[str, Any] = job["result"] or {}
            said = (facts.history.workers.get(result.get("pid", 0)), result.get("attempt"))
            held = (job["worker_id"], job["attempts"])
            if said != held:
                yield f"job {id} was completed by {said} while {held} held it"


# ── handlers ──────────────────────────────────────────────────────────────────────────────


def what_runs_was_claimed(facts: Facts) -> Iterator[str]:
    """An attempt runs once per claim. A crash may forget a claim that was not on disk yet."""
    claims = Counter(
        (move.job, move.now.worker, move.now.attempts)
        for move in facts.moves
        if move.now and move.now.status == "claimed"
    )
    runs: Counter[tuple[str, str, int]] = Counter()
    forgotten: Counter[tuple[str, str, int]] = Counter()
    for run in facts.history.runs:
        runs[run.job, run.worker, run.attempt] += 1
        forgotten[run.job, run.worker, run.attempt] += facts.history.crashed_around(run.began)
    for lease, times in runs.items():
        if times - forgotten[lease] > claims[lease]:
            yield f"{lease} ran {times} times and was claimed {claims[lease]} times"


def nobody_runs_what_another_still_runs(facts: Facts) -> Iterator[str]:
    """Attempt k+1 begins after attempt k ended, or after its worker was given up."""
    taken = {move.lease: move.at for move in facts.taken}
    by_job: dict[str, list[Run]] = defaultdict(list)
    for run in facts.history.runs:
        by_job[run.job].append(run)
    for job, runs in by_job.items():
        runs.sort(key=lambda run: run.began)
        for one, after in pairwise(runs):
            if one.ended is not None and one.ended <= after.began:
                continue
            given_up = taken.get((job, one.worker, one.attempt))
            if given_up is not None and given_up <= after.began:
                continue
            if not facts.history.crashed_around(one.began):
                yield (
                    f"job {job}: attempt {after.attempt} began on {after.worker} while "
                    f"attempt {one.attempt} was at work on {one.worker}"
                )


def nobody_is_given_up_without_a_reason(facts: Facts) -> Iterator[str]:
    pids = {run.worker: run.pid for run in facts.history.runs}
    for move in facts.taken:
        job, worker, attempt = move.lease
        if worker is None or worker not in pids:
            continue  # who never beats is judged by the clock alone
        if move.now is not None and move.now.status == "cancelled":
            continue
        if not facts.history.given_up_rightly(pids[worker], move.at, facts.lease):
            yield f"{worker} was given up at attempt {attempt} of {job}, and nothing silenced it"


def a_late_report_changes_nothing_and_is_told(facts: Facts) -> Iterator[str]:
    """Whoever ends an attempt sees it ended as theirs, or hears that it is theirs no more."""
    own = {move.lease for move in facts.endings}
    taken = {move.lease for move in facts.taken}
    killed = {pid for fault in facts.history.faults for pid in fault.kills}
    told = facts.history.told | {
        (one.worker, one.job, one.attempt) for one in facts.history.settled if one.moved is False
    }
    for run in facts.history.runs:
        lease = (run.job, run.worker, run.attempt)
        if run.how not in ("returned", "raised") or run.pid in killed:
            continue
        if (run.worker, run.job, run.attempt) in told:
            continue
        if lease in taken:
            yield f"{lease} came too late and was not told"
        elif lease not in own:
            yield f"{lease} ended as '{run.how}', and nobody heard of it"
    unsure = {(s.job, s.worker, s.attempt) for s in facts.history.settled if s.how != OK}
    completed = {m.lease for m in facts.endings if m.now and m.now.status == "completed"}
    for settled in facts.history.settled:
        lease = (settled.job, settled.worker, settled.attempt)
        if settled.moved and lease not in completed:
            yield f"{lease} was told that it completed its job, and did not"
        if settled.moved is False and lease in completed and lease not in unsure:
            yield f"{lease} was told that it came too late, and did not"


# ── what is counted ───────────────────────────────────────────────────────────────────────


def jobs_events_and_counts_agree(facts: Facts) -> Iterator[str]:
    for id, job in facts.trail.jobs.items():
        numbers = facts.trail.events.get(id, [])
        if numbers != list(range(1, job["events_count"] + 1)):
            yield f"job {id} counts {job['events_count']} events and has {numbers}"
    for id in facts.trail.events.keys() - facts.trail.jobs.keys():
        yield f"events of job {id}, which does not exist"
    if facts.trail.counted != facts.trail.told:
        yield f"counted {facts.trail.counted}, told {facts.trail.told}"


PROMISES = (
    acknowledged_enqueues_are_kept,
    unknown_enqueues_become_one_job_at_most,
    what_was_refused_or_rolled_back_never_was,
    every_move_is_one_of_the_contract,
    attempts_are_counted_and_end,
    an_attempt_ends_once,
    a_job_is_completed_by_who_held_it,
    what_runs_was_claimed,
    nobody_runs_what_another_still_runs,
    nobody_is_given_up_without_a_reason,
    a_late_report_changes_nothing_and_is_told,
    no_better_job_was_passed_over,
    no_better_job_was_left_waiting,
    jobs_events_and_counts_agree,
)


def _legal(move: Move) -> bool:
    was, now = move.was, move.now
    if was is None:
        return now == Stand("pending", None, 0)
    if now is None:
        return False
    same = (now.worker, now.attempts) == (was.worker, was.attempts)
    if was.status == "pending":
        claimed = now.status == "claimed" and now.worker is not None
        return (claimed and now.attempts == was.attempts + 1) or (
            now.status == "cancelled" and same
        )
    if was.status not in HELD:
        return False
    if now.status == "pending":  # tried again, or handed back and not counted
        return now.worker is None and now.attempts in (was.attempts, was.attempts - 1)
    return same and (now.status in FINISHED or (was.status, now.status) == ("claimed", "running"))
