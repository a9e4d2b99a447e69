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
        r"case when f\.ordered then array",
        "case when false then array",
    ),
    "a retry gives an ordered slot away": (
        "60_settle/retry.sql",
        r"howdah\.is_ordered\(j\.job_type\) then 'backoff'",
        "false then 'backoff'",
    ),
    "an end hands nothing over": (
        "55_finish/finish.sql",
        r"perform howdah\.hand_over\(v_slots\)",
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
    "a job of a run goes back into the line": (
        "60_settle/retry.sql",
        r"when j\.ready_at is null then 'slot'",
        "",
    ),
    "an arrival requests no look": (
        "35_admit/request_looks.sql",
        r"if p_key is not null then",
        "if false then",
    ),
    "a plain end requests no look": (
        "60_settle/plain_update.sql",
        r"perform howdah\.request_look\(old\.job_type, old\.key, old\.limited_by\)",
        "null",
    ),
}


def break_engine(db: Database, what: str) -> None:
    path, old, new = BROKEN[what]
    (text,) = [file.text for file in engine_files.engine() if file.path == path]
    broken, count = re.subn(old, new, text)
    assert count == 1, f"{path} has changed: {old}"
    db.connection.execute(broken.encode())
