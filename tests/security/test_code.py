"""Data is never executed: not unpickled, not evaluated, not pasted into a statement.

There are three proofs. The source has no call that could do it, except the places that are named
here with the reason. The pipe and the inbox between a worker and its children carry JSON, and
anything else ends only that child. In SQL, only the functions that create and drop a day's table
build statements, from their own names.
"""

from __future__ import annotations

import ast
import asyncio
import pickle
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from howdah.run.process import protocol
from howdah.run.process.child_process import command
from howdah.run.process.inbox import Inbox
from howdah.states import State
from tests.security.app import queue_at
from tests.security.privileges import WRITES_STATEMENTS
from tests.support import Database

SOURCE = Path(__file__).resolve().parent.parent.parent / "src" / "howdah"

# Calls that turn data into code, or that come close to it.
MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "yaml", "code", "runpy"}
CALLS = {"eval", "exec", "compile", "__import__", "execfile"}
METHODS = {"system", "popen", "getoutput", "getstatusoutput", "import_module", "exec_module"}

# Places where a name in a job or on a command line selects code, and the reason.
ALLOWED = {
    ("run/process/child_main.py", "import_module"): "the worker names its own handler's module",
    ("run/process/child_main.py", "exec_module"): "the file the worker itself was started from",
    ("cli/load.py", "import_module"): "the module that `howdah worker MODULE:QUEUE` names",
}


def trees() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        yield str(path.relative_to(SOURCE)), ast.parse(path.read_text(encoding="utf-8"))


def dangerous_names(tree: ast.Module) -> Iterator[str]:
    """Yield every name in a module that can turn data into code."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] in MODULES)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in MODULES:
            yield str(node.module)
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if (
                (isinstance(node.func, ast.Name) and name in CALLS)
                or name in METHODS
                or name in ("import_module", "exec_module")
            ):
                yield name
            elif any(k.arg == "shell" and not _is_false(k.value) for k in node.keywords):
                yield f"{name}(shell=…)"


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def test_no_code_in_the_source_turns_data_into_code() -> None:
    uses = {(path, name) for path, tree in trees() for name in dangerous_names(tree)}
    assert uses == set(ALLOWED)


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "from pickle import loads",
        "import yaml.loader",
        "eval(x)",
        "exec(x)",
        "import os; os.system(x)",
        "subprocess.run(x, shell=True)",
        "importlib.import_module(x)",
    ],
)
def test_the_scan_detects_dangerous_code(code: str) -> None:
    assert list(dangerous_names(ast.parse(code)))


def test_no_value_is_formatted_into_an_sql_statement() -> None:
    """An f-string with SQL may only contain our own columns and conditions."""
    sql = re.compile(r"(?i)\b(select|insert into|update|delete from|alter|copy)\s")
    pasted: set[tuple[str, str]] = set()
    for path, tree in trees():
        for node in ast.walk(tree):
            if not isinstance(node, ast.JoinedStr):
                continue
            constant = "".join(
                part.value
                for part in node.values
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
            )
            if path.startswith("store/") and sql.search(constant):
                holes = [part for part in node.values if isinstance(part, ast.FormattedValue)]
                pasted |= {(path, ast.unparse(hole.value)) for hole in holes}
    assert pasted <= {
        ("store/watch.py", "JOB_COLUMNS"),
        ("store/engine_files.py", "tables_fingerprint()"),
        ("store/claim.py", "JOB_COLUMNS"),
        ("store/claim.py", "CLAIM_COLUMNS"),
        ("store/settle.py", "CLAIM_COLUMNS"),
        ("store/engine_files.py", "SCHEMA_NUMBER"),
        ("store/engine_files.py", "COMPATIBLE_FROM"),
        ("store/engine_files.py", "fingerprint()"),
    }
    assert ("store/watch.py", "JOB_COLUMNS") in pasted, "the scan sees such strings"


# ── SQL ──


@pytest.mark.engine
def test_only_two_sql_functions_build_statements_and_they_quote(shared_db: Database) -> None:
    shared_db.execute("set search_path = public")
    bodies = {
        row["name"].removeprefix("howdah."): row["body"]
        for row in shared_db.rows(
            "select oid::regprocedure::text as name, pg_get_functiondef(oid) as body from pg_proc "
            "where pronamespace = 'howdah'::regnamespace"
        )
    }
    shared_db.execute("set search_path = howdah, public")
    writing = {name for name, body in bodies.items() if re.search(r"(?i)\bexecute\b", body)}
    assert writing == WRITES_STATEMENTS
    for name in writing:
        for statement in re.findall(r"(?is)\bexecute\b(.*?);", bodies[name]):
            assert statement.strip().startswith("format('")
            holes = re.findall(r"%(?:\d\$)?(.)", statement)
            assert holes
            assert set(holes) <= {"I", "L"}, "placeholders must quote their value"


# ── the pipe ──


class Exploit:
    """Runs a command when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return subprocess.call, (["touch", str(self.path)],)


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def hostile_bodies(path: Path) -> list[bytes]:
    return [
        pickle.dumps(Exploit(path)),
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"type": "run"}',
        b'{"type": "begin", "path": 5, "main": null}',
        b"\xff\xfe",
        b"[" * 100_000,
        f"__import__('os').system('touch {path}')".encode(),
    ]


def test_the_exploit_works_if_it_is_unpickled(tmp_path: Path) -> None:
    pickle.loads(pickle.dumps(Exploit(tmp_path / "sprung")))
    assert (tmp_path / "sprung").exists()


@pytest.mark.parametrize("channel", ["pipe", "inbox"])
@pytest.mark.parametrize("nth", range(10))
def test_a_hostile_message_to_a_child_is_not_executed(
    tmp_path: Path, nth: int, channel: str
) -> None:
    """A real child, started as a worker starts it, gets an invalid message."""
    sprung = tmp_path / "sprung"
    body = hostile_bodies(sprung)[nth]
    ours, theirs = socket.socketpair()
    inbox = Inbox()
    with ours, theirs, closing(inbox):
        child = subprocess.Popen(
            command(theirs.fileno(), inbox.fileno),
            pass_fds=[theirs.fileno(), inbox.fileno],
            stderr=subprocess.PIPE,
        )
        theirs.close()
        ours.sendall(protocol.frame(protocol.Begin(path=sys.path, main=None)))
        ready = ours.recv(1000)
        assert b'"ready"' in ready
        if channel == "pipe" or not inbox.put(body):  # the longest does not fit into the inbox
            ours.sendall(framed(body))
        elif not body:  # an empty inbox message means: read the pipe
            ours.sendall(framed(b"nothing there either"))
        try:
            child.communicate(timeout=30)
        finally:
            child.kill()
            child.wait()
        assert child.returncode == 1, "the child exits with an error"
    assert not sprung.exists()


@pytest.mark.parametrize("nth", range(11))
async def test_a_hostile_message_from_a_child_is_not_executed_and_costs_one_attempt(
    dsn: str, tmp_path: Path, nth: int
) -> None:
    """A job controls its process. Its messages may only affect its own attempt."""
    executed = tmp_path / "sprung"
    endless = b"\xff\xff\xff\xff and no more"  # its header announces 4 GB
    message = [*map(framed, hostile_bodies(executed)), endless][nth].hex()
    queue = queue_at(dsn)
    async with queue:
        handle = await queue.enqueue("write_to_pipe", {"message": message}, max_attempts=1)
        after = await queue.enqueue("echo", {"n": 1})
        async with asyncio.timeout(60), queue.worker(processes=1) as worker:
            await worker.run_until_idle()
        job = await handle.job()
        assert job.status is State.FAILED
        assert "the process of this job sent" in (job.last_error or "")
        assert (await after.job()).status is State.COMPLETED, "the worker works on"
    assert not executed.exists()
