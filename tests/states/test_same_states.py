"""Python and SQL have the same states, verbs and moves."""

from __future__ import annotations

import re

import psycopg
import pytest

from howdah.states import MOVES, State, Verb
from tests.support import Database

pytestmark = pytest.mark.engine

FUNCTION_OF = {Verb.CLAIM: "claim_job_batch", Verb.RECOVER: "recover_stale_jobs"}


def test_python_and_sql_list_the_same_moves(shared_db: Database) -> None:
    rows = shared_db.rows("select verb, source, target from howdah.moves")
    moves_in_sql = {(row["verb"], row["source"], row["target"]) for row in rows}
    assert moves_in_sql == {(str(verb), str(source), str(target)) for verb, source, target in MOVES}


def test_python_and_sql_accept_the_same_states(shared_db: Database) -> None:
    definition = shared_db.value(
        "select pg_get_constraintdef(oid) from pg_constraint "
        "where contypid = 'howdah.job_status'::regtype and contype = 'c'"
    )
    assert set(re.findall(r"'(\w+)'", definition)) == {str(state) for state in State}


@pytest.mark.parametrize("word", ["", "Pending", "pending ", "done", "retrying"])
def test_another_word_is_refused_as_a_state(shared_db: Database, word: str) -> None:
    with pytest.raises(psycopg.errors.CheckViolation):
        shared_db.value("select %s::howdah.job_status", word)


@pytest.mark.parametrize("verb", list(Verb))
def test_each_verb_is_a_function(shared_db: Database, verb: Verb) -> None:
    name = FUNCTION_OF.get(verb, str(verb))
    assert shared_db.value("select count(*) from pg_proc where proname = %s", name) >= 1


def test_the_finished_states_are_those_of_the_table_jobs_finished(shared_db: Database) -> None:
    bound = shared_db.value(
        "select pg_get_expr(relpartbound, oid) from pg_class "
        "where oid = 'howdah.jobs_finished'::regclass"
    )
    assert set(re.findall(r"'(\w+)'", bound)) == {str(s) for s in State if s.finished}
