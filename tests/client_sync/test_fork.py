"""A forked child has a portal and connections of its own, and leaves its parent's alone."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import psycopg

# Python 3.12 and later warn of forks beside threads, which is what this is about.
WARNINGS = ("-W", "error::ResourceWarning", "-W", "ignore::DeprecationWarning")

PROGRAM = """
import gc
import os
import sys
from howdah import JobCancelled, SyncQueue

queue = SyncQueue(sys.argv[1])

@queue.job
def note(who: str) -> None: ...

first = note.enqueue(who="parent before")   # the portal runs, connections are open
first.cancel()

def follow():
    try:
        first.result(timeout=30)
    except JobCancelled:
        pass

follow()

def child(n):
    assert first.job().status.finished      # a handle made before the fork
    follow()                                # and what follows it
    note.enqueue(who=f"child {n}")
    assert note.enqueue_many([{"who": f"child {n} too"}]) == 1
    gc.collect()
    if n == 1:
        queue.close()

children = []
for n in range(3):
    pid = os.fork()
    if pid == 0:
        child(n)
        sys.exit(0)
    children.append(pid)
for pid in children:
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
note.enqueue(who="parent after")            # on the connections it had
assert first.job().status.finished
follow()
queue.close()
"""


def test_prefork_children_enqueue_and_the_parent_goes_on(dsn: str) -> None:
    done = subprocess.run(
        [sys.executable, *WARNINGS, "-c", textwrap.dedent(PROGRAM), dsn],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    with psycopg.connect(dsn) as connection:
        rows = connection.execute("select data->>'who' from howdah.jobs").fetchall()
    assert sorted(row[0] for row in rows) == sorted(
        ["parent before", "parent after"]
        + [f"child {n}{too}" for n in range(3) for too in ("", " too")]
    )
