"""A child process ends when its worker dies, because the kernel tells it."""

from __future__ import annotations

import asyncio
import json
import select
import socket
import subprocess
import time
from pathlib import Path
from uuid import uuid4

import pytest

from howdah.job import Claim
from howdah.run.process import protocol
from howdah.run.process.child_process import begin_message, command
from howdah.run.process.inbox import Inbox
from tests.run import process_jobs
from tests.support.waiting import DEADLINE, eventually


@pytest.mark.parametrize("running", [False, True], ids=["idle", "running"])
@pytest.mark.parametrize("read_first", [True, False], ids=["read", "unread"])
async def test_a_child_dies_with_its_worker(
    tmp_path: Path, read_first: bool, running: bool
) -> None:
    """If the worker has not read the last message, the child gets a connection reset."""
    (pipe, theirs), inbox = socket.socketpair(), Inbox()
    ends = (theirs.fileno(), inbox.fileno)
    process = subprocess.Popen(command(*ends), pass_fds=ends)
    try:
        theirs.close()
        pipe.sendall(protocol.frame(begin_message()))
        if running:
            assert inbox.put(protocol.encode(sleep_forever(tmp_path / "begun")))
            await eventually((tmp_path / "begun").exists)
        assert await asyncio.to_thread(select.select, [pipe], [], [], DEADLINE) == ([pipe], [], [])
        if read_first:
            assert pipe.recv(65536)
        pipe.close()
        inbox.close()
        assert await asyncio.to_thread(process.wait, DEADLINE) == 0
    finally:
        process.kill()
        process.wait()


def sleep_forever(begun: Path) -> protocol.RunJob:
    handler, now = process_jobs.sleepy.handler, time.time()
    data = json.dumps({"path": str(begun)})
    claim = Claim(uuid4(), handler.job_type, 100, data, 1, 1, now, now, now)
    return protocol.RunJob(handler.function.__module__, handler.function.__qualname__, claim)
