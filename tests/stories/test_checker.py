"""The checker itself: silent about the engine as it is, red when any one promise is taken out.

Each file of broken/ replaces one function of the engine by the naive version of it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from tests.stories.checker import PROMISES, check
from tests.stories.facts import Facts
from tests.stories.history import ROLLED_BACK, History
from tests.stories.little_story import play
from tests.stories.trail import Stand

BROKEN = Path(__file__).with_name("broken")

GOES_RED = {
    "no_fence": "a_job_is_completed_by_who_held_it",
    "no_end": "an_attempt_ends_once",
    "no_answer": "a_late_report_changes_nothing_and_is_told",
    "no_skip_locked": "every_move_is_one_of_the_contract",
    "no_priority": "no_better_job_was_passed_over",
    "no_fifo": "no_better_job_was_passed_over",
    "no_claim_order": "no_better_job_was_passed_over",
    "no_count": "every_move_is_one_of_the_contract",
    "no_last_attempt": "attempts_are_counted_and_end",
    "by_age_alone": "nobody_is_given_up_without_a_reason",
    "recovered_for_ever": "attempts_are_counted_and_end",
    "enqueue_nothing": "acknowledged_enqueues_are_kept",
    "enqueue_twice": "unknown_enqueues_become_one_job_at_most",
    "uncounted_events": "jobs_events_and_counts_agree",
    "uncounted_jobs": "jobs_events_and_counts_agree",
}


def test_the_engine_as_it_is_breaks_nothing(dsn: str, tmp_path: Path) -> None:
    facts = play(dsn, tmp_path)
    assert check(facts) == []
    assert len(facts.trail.jobs) == 13, "the story was played to its end"


@pytest.mark.parametrize("variant", sorted(path.stem for path in BROKEN.glob("*.sql")))
def test_a_broken_engine_is_found_out(variant: str, dsn: str, tmp_path: Path) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute((BROKEN / f"{variant}.sql").read_bytes())
    findings = check(play(dsn, tmp_path))
    assert GOES_RED[variant] in {finding.partition(":")[0] for finding in findings}, findings


# ── what no replaced function can break: the same good story, told with one lie in it ──


@pytest.fixture
def facts(dsn: str, tmp_path: Path) -> Facts:
    return play(dsn, tmp_path)


def broken_promises(facts: Facts, history: History) -> set[str]:
    findings = check(replace(facts, history=history))
    return {finding.partition(":")[0] for finding in findings}


def test_a_rolled_back_enqueue_that_ran_is_found_out(facts: Facts) -> None:
    lie = [replace(one, how=ROLLED_BACK) for one in facts.history.enqueued]
    found = broken_promises(facts, replace(facts.history, enqueued=lie))
    assert found == {"what_was_refused_or_rolled_back_never_was"}


def test_a_run_that_nobody_claimed_is_found_out(facts: Facts) -> None:
    again = replace(facts.history.runs[0], worker="nobody")
    found = broken_promises(facts, replace(facts.history, runs=[*facts.history.runs, again]))
    assert "what_runs_was_claimed" in found


def test_two_workers_at_one_job_are_found_out(facts: Facts) -> None:
    first, *others = facts.history.runs
    both = [replace(first, ended=None), replace(first, began=first.began + 1, worker="another")]
    found = broken_promises(facts, replace(facts.history, runs=[*both, *others]))
    assert "nobody_runs_what_another_still_runs" in found


def test_a_worker_given_up_without_a_fault_is_found_out(facts: Facts) -> None:
    found = broken_promises(facts, replace(facts.history, faults=[]))
    assert found == {"nobody_is_given_up_without_a_reason"}


def test_an_ending_nobody_heard_of_is_found_out(facts: Facts) -> None:
    lost = replace(facts.history.runs[0], attempt=7)
    found = broken_promises(facts, replace(facts.history, runs=[*facts.history.runs, lost]))
    assert "a_late_report_changes_nothing_and_is_told" in found


def test_a_better_job_left_waiting_is_found_out(facts: Facts) -> None:
    """Let the first job of all have waited for a minute, beside everything that was claimed."""
    job, (made, *_) = next(iter(facts.trail.moves.items()))
    early = replace(made, at=made.at - 30, priority=1000)
    late = replace(made, at=made.at + 30, was=made.now, now=Stand("cancelled", None, 0))
    moves = {**facts.trail.moves, job: [early, late]}
    waited = replace(facts, trail=replace(facts.trail, moves=moves))
    found = broken_promises(waited, replace(facts.history, faults=[]))
    assert "no_better_job_was_left_waiting" in found


def test_every_promise_was_seen_to_go_red() -> None:
    here = Path(__file__).read_text(encoding="utf-8")
    for promise in PROMISES:
        assert f'"{promise.__name__}"' in here, f"nothing breaks {promise.__name__}"
