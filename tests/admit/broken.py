"""Broken: engines that are broken on purpose, so that a test can show that it finds them."""

from __future__ import annotations

import re

from howdah.store import engine_files
from tests.support import Database

_LOCK = r"or not pg_try_advisory_xact_lock\(howdah\.lock_space\(\), 6\)"
_NOT_LOCKED = (
    "array(select k.ctid from howdah.admission_requests as k "
    "where k.ctid = any (v_rows) for update skip locked)"
)

# a file, what stands in it, and what stands there instead
BROKEN = {
    "no admission lock": (
        "35_admit/admit.sql",
        # the requests that a look deletes are a lock, too: here it leaves out those of others
        (
            r"(?s)or not pg_try_advisory_xact_lock\(howdah\.lock_space\(\), 6\)"
            r"(.*r\.ctid = any \()v_rows\)"
        ),
        (
            r"or false\1array(select k.ctid from howdah.admission_requests as k "
            r"where k.ctid = any (v_rows) for update skip locked))"
        ),
    ),
    "no check that somebody will look again at a key": (
        "35_admit/admit_keys.sql",
        r"j\.xmax = '0'::xid",
        "true",
    ),
    "no check that somebody will look again at a limit": (
        "35_admit/admit_limit.sql",
        r"j\.xmax = '0'::xid",
        "true",
    ),
    "a hand-over skips a locked head": (
        "35_admit/hand_over.sql",
        (
            r"(?s)where f\.ordered and f\.slots_left > 0"
            r"(.*?)case when f\.ordered then 0 else (f\.slots_left \* 2 \+ 16) end"
        ),
        r"where false\1\2",
    ),
    "a retry gives an ordered slot away": (
        "60_settle/retry.sql",
        r"howdah\.is_ordered\(j\.job_type\) then 'backoff'",
        "false then 'backoff'",
    ),
    "an end hands nothing over": (
        "55_finish/finish.sql",
        r"v_claimed := howdah\.hand_over\(v_slots, p_worker_id, p_claims\)",
        "null",
    ),
    "a run does not check its head": (
        "35_admit/claim_run.sql",
        r"(?s)and j\.attempts = l\.attempt\n.*?j\.key is not null",
        "or j.id = any (array[l.id])",
    ),
    "a slot goes on before the last of a run has ended": (
        "35_admit/hand_over.sql",
        r"(?s)case when v_blind or \(.*?limit 1\) then 0 else 1 end(.*?where not f\.ordered or)",
        r"1\1 true or",
    ),
    "an end of a run leaves all to another end": (
        "35_admit/hand_over.sql",
        r"and \(j\.xmax = '0'::xid or j\.xmax = j\.xmin\)",
        "",
    ),
    "jobs of a run that go back request no look": (
        "35_admit/hand_over.sql",
        r"not f\.ordered or p_back or",
        "not f.ordered or",
    ),
    "the rest of a run goes back into the line": (
        "60_settle/release.sql",
        (
            r"(?s) or \(j\.admission is not null and j\.ready_at is null\)( then null.*?)"
            r"when j\.admission is not null and j\.ready_at is null then 'slot'\s+when"
        ),
        r"\1when",
    ),
    "an arrival requests no look": (
        "35_admit/request_looks.sql",
        r"if p_key is not null then",
        "if false then",
    ),
    "a job with a key joins the line at once": (
        "35_admit/first_admission.sql",
        r"select case when l\.name is null and",
        "select case when true or l.name is null and",
    ),
    "a key ignores its number of slots": (
        "35_admit/admit_keys.sql",
        r"coalesce\(r\.at_once, 1\) - \(select count",
        "1000 - (select count",
    ),
    "a limit ignores its number of slots": (
        "35_admit/admit_limit.sql",
        r"select v_limit\.at_once - count\(\*\) into",
        "select 1000 into",
    ),
    "a limit ignores its rate": (
        "35_admit/admit_limit.sql",
        r"v_slots := least\(v_slots, v_tokens\)",
        "null",
    ),
    "an ordered key takes the newest": (
        "35_admit/next_in_order.sql",
        r"order by j\.arrival limit p_limit\) as f",
        "order by j.arrival desc limit p_limit) as f",
    ),
    "nobody asks who has a unique key": (
        "30_enqueue/take_unique_key.sql",
        r"if v_key\.job_id <> p_id and",
        "if false and",
    ),
    "an expired job is claimed": (
        "40_claim/lock_best.sql",
        r"and \(j\.expires_at is null or j\.expires_at > p_now\)",
        "",
    ),
    "a plain end requests no look": (
        "60_settle/plain_update.sql",
        r"perform howdah\.request_look\(old\.job_type, old\.key, old\.limited_by\)",
        "null",
    ),
}


def break_engine(db: Database, what: str) -> None:
    db.connection.execute(broken_function(what).encode())


def broken_function(what: str) -> str:
    """Return the SQL that puts a broken function in the place of the engine's."""
    path, old, new = BROKEN[what]
    (text,) = [file.text for file in engine_files.engine() if file.path == path]
    broken, count = re.subn(old, new, text)
    assert count == 1, f"{path} has changed: {old}"
    return broken
