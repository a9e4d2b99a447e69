"""A child process dies with its worker, of whose end the kernel alone can tell it."""

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
from howdah.run.process.child_process import begin, command
from howdah.run.process.inbox import Inbox
from tests.run import process_jobs
from tests.support.waiting import DEADLINE, eventually


@pytest.mark.parametrize("at_work", [False, True], ids=["at rest", "at work"])
@pytest.mark.parametrize("heard", [True, False], ids=["heard", "unheard"])
async def test_a_child_dies_with_its_worker(tmp_path: Path, heard: bool, at_work: bool) -> None:
    """To a child whose last words nobody has read the end is a reset."""
    (pipe, theirs), tray = socket.socketpair(), Inbox()
    ends = (theirs.fileno(), tray.fileno)
    process = subprocess.Popen(command(*ends), pass_fds=ends)
    try:
        theirs.close()
        pipe.sendall(protocol.frame(begin()))
        if at_work:
            assert tray.lay(protocol.encode(sleep_for_ever(tmp_path / "begun")))
            await eventually((tmp_path / "begun").exists)
        assert await asyncio.to_thread(select.select, [pipe], [], [], DEADLINE) == ([pipe], [], [])
        if heard:
            assert pipe.recv(65536)
        pipe.close()
        tray.close()
        assert await asyncio.to_thread(process.wait, DEADLINE) == 0
    finally:
        process.kill()
        process.wait()


def sleep_for_ever(begun: Path) -> protocol.Do:
    handler, now = process_jobs.sleepy.handler, time.time()
    data = json.dumps({"path": str(begun)})
    claim = Claim(uuid4(), handler.job_type, 100, data, 1, 1, now, now, now)
    return protocol.Do(handler.function.__module__, handler.function.__qualname__, claim)
