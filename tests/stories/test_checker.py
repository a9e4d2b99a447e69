"""The checker finds nothing in the real engine, and finds each broken promise.

Each file of broken/ replaces one function of the engine by a naive version. The cases of keys,
limits and rates that need more than one story are in test_admission_checks.py.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from tests.admit.broken import broken_function
from tests.stories.checker import PROMISES, check
from tests.stories.history import EXISTED, ROLLED_BACK, History
from tests.stories.move_log import RowVersion
from tests.stories.scripted_story import play
from tests.stories.story_result import StoryResult

BROKEN = Path(__file__).with_name("broken")

BROKEN_PROMISE = {
    "no_fence": "a_job_is_completed_by_the_holder_of_its_lease",
    "no_end": "an_attempt_ends_once",
    "no_answer": "a_late_report_changes_nothing_and_is_refused",
    "no_skip_locked": "every_move_is_one_of_the_contract",
    "no_priority": "no_better_job_was_skipped",
    "no_fifo": "no_better_job_was_skipped",
    "no_claim_order": "no_better_job_was_skipped",
    "no_count": "every_move_is_one_of_the_contract",
    "no_last_attempt": "attempts_are_counted_and_end",
    "by_age_alone": "no_worker_is_given_up_without_a_fault",
    "recovered_for_ever": "attempts_are_counted_and_end",
    "enqueue_nothing": "acknowledged_enqueues_are_kept",
    "enqueue_twice": "unknown_enqueues_become_one_job_at_most",
    "uncounted_events": "jobs_events_and_counts_agree",
    "uncounted_jobs": "jobs_events_and_counts_agree",
    "no_fence_in_transaction": "a_completed_job_has_its_effect_exactly_once",
    "completed_apart": "an_effect_is_committed_with_the_completion_of_its_job",
}


# those of tests/admit/broken.py
BROKEN_ADMISSION = {
    "a job with a key joins the line at once": {
        "no_job_with_a_limit_begins_unadmitted",
        "jobs_of_an_ordered_key_run_one_after_the_other",
    },
    "a key ignores its number of slots": {
        "no_key_has_more_at_work_than_allowed",
        "jobs_of_an_ordered_key_run_one_after_the_other",
    },
    "a limit ignores its number of slots": {"no_limit_has_more_at_work_than_allowed"},
    "a limit ignores its rate": {"no_window_has_more_starts_than_its_rate_allows"},
    "an ordered key takes the newest": {"jobs_of_an_ordered_key_run_in_the_order_of_enqueueing"},
    "nobody asks who has a unique key": {"a_unique_key_has_one_live_job"},
    "an expired job is claimed": {"no_attempt_begins_after_its_job_expired"},
    "an end hands nothing over": {"every_job_ends"},
}


def test_the_real_engine_keeps_every_promise(dsn: str, tmp_path: Path) -> None:
    result = play(dsn, tmp_path)
    assert check(result) == []
    assert len(result.move_log.jobs) == 29, "the story was played to its end"


@pytest.mark.parametrize("variant", sorted(path.stem for path in BROKEN.glob("*.sql")))
def test_a_broken_engine_is_reported(variant: str, dsn: str, tmp_path: Path) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute((BROKEN / f"{variant}.sql").read_bytes())
    findings = check(play(dsn, tmp_path))
    assert BROKEN_PROMISE[variant] in {finding.partition(":")[0] for finding in findings}, findings


@pytest.mark.parametrize("what", BROKEN_ADMISSION)
def test_an_engine_that_admits_wrongly_is_reported(what: str, dsn: str, tmp_path: Path) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(broken_function(what).encode())
    findings = check(play(dsn, tmp_path))
    assert BROKEN_ADMISSION[what] <= {finding.partition(":")[0] for finding in findings}, findings


# ── promises that no replaced function breaks: a good result with one false record ──


@pytest.fixture
def result(dsn: str, tmp_path: Path) -> StoryResult:
    return play(dsn, tmp_path)


def broken_promises(result: StoryResult, history: History) -> set[str]:
    findings = check(replace(result, history=history))
    return {finding.partition(":")[0] for finding in findings}


def test_a_rolled_back_enqueue_that_ran_is_reported(result: StoryResult) -> None:
    rolled_back = [replace(enqueued, how=ROLLED_BACK) for enqueued in result.history.enqueued]
    broken = broken_promises(result, replace(result.history, enqueued=rolled_back))
    assert broken == {"refused_and_rolled_back_enqueues_leave_no_job"}


def test_a_run_without_a_claim_is_reported(result: StoryResult) -> None:
    unclaimed = replace(result.history.runs[0], worker="another")
    broken = broken_promises(
        result, replace(result.history, runs=[*result.history.runs, unclaimed])
    )
    assert "every_run_was_claimed" in broken


def test_two_runs_of_one_job_at_once_are_reported(result: StoryResult) -> None:
    first, *others = result.history.runs
    both = [replace(first, ended=None), replace(first, began=first.began + 1, worker="another")]
    broken = broken_promises(result, replace(result.history, runs=[*both, *others]))
    assert "attempts_of_a_job_do_not_overlap" in broken


def test_a_worker_given_up_without_a_fault_is_reported(result: StoryResult) -> None:
    broken = broken_promises(result, replace(result.history, faults=[]))
    assert broken == {"no_worker_is_given_up_without_a_fault"}


def test_a_lost_ending_is_reported(result: StoryResult) -> None:
    lost = replace(result.history.runs[0], attempt=7)
    broken = broken_promises(result, replace(result.history, runs=[*result.history.runs, lost]))
    assert "a_late_report_changes_nothing_and_is_refused" in broken


def test_a_better_job_left_waiting_is_reported(result: StoryResult) -> None:
    """Let the first job wait for a minute, while all others are claimed."""
    job, (created, *_) = next(iter(result.move_log.moves.items()))
    early = replace(created, at=created.at - 30, priority=1000)
    late = replace(
        created, at=created.at + 30, before=created.after, after=RowVersion("cancelled", None, 0)
    )
    moves = {**result.move_log.moves, job: [early, late]}
    waited = replace(result, move_log=replace(result.move_log, moves=moves))
    broken = broken_promises(waited, replace(result.history, faults=[]))
    assert "no_better_job_was_left_waiting" in broken


def test_a_job_added_beside_the_one_that_existed_is_reported(result: StoryResult) -> None:
    existed = [
        replace(enqueued, how=EXISTED, holder="another") if enqueued.token == "kept-0" else enqueued
        for enqueued in result.history.enqueued
    ]
    broken = broken_promises(result, replace(result.history, enqueued=existed))
    assert broken == {"an_enqueue_that_met_its_job_adds_none"}


def test_every_promise_is_broken_by_a_test() -> None:
    tests = Path(__file__).read_text(encoding="utf-8")
    for promise in PROMISES:
        assert f'"{promise.__name__}"' in tests, f"no test breaks {promise.__name__}"
