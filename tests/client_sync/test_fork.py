"""A forked child has its own portal and connections, and does not touch its parent's."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import psycopg

# Python 3.12 and later warn about a fork in a process with threads, which is tested here.
WARNINGS = ("-W", "error::ResourceWarning", "-W", "ignore::DeprecationWarning")

PROGRAM = """
import gc
import os
import sys
from howdah import JobCancelled, SyncQueue

queue = SyncQueue(sys.argv[1])

@queue.job
def note(sender: str) -> None: ...

first = note.enqueue(sender="parent before")   # the portal runs, connections are open
first.cancel()

def follow():
    try:
        first.result(timeout=30)
    except JobCancelled:
        pass

follow()

def child(n):
    assert first.job().status.finished      # a handle made before the fork
    follow()                                # and its follower
    note.enqueue(sender=f"child {n}")
    assert note.enqueue_many([{"sender": f"child {n} too"}]) == 1
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
note.enqueue(sender="parent after")            # on its old connections
assert first.job().status.finished
follow()
queue.close()
"""


def test_forked_children_enqueue_and_the_parent_continues(dsn: str) -> None:
    result = subprocess.run(
        [sys.executable, *WARNINGS, "-c", textwrap.dedent(PROGRAM), dsn],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
    with psycopg.connect(dsn) as connection:
        rows = connection.execute("select data->>'sender' from howdah.jobs").fetchall()
    assert sorted(row[0] for row in rows) == sorted(
        ["parent before", "parent after"]
        + [f"child {n}{too}" for n in range(3) for too in ("", " too")]
    )
