"""A worker is killed, frozen or cut off between the effect of its job and the completion.

With both in one transaction the effect happens exactly once. A handler that commits them one after
the other has it twice, and the checker reports it.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.stories.checker import check
from tests.stories.history import Fault
from tests.stories.story import Story, story
from tests.support.postgres_server import PgServer

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("stories")]

LONG = 600.0  # seconds that the first attempt lingers
HOLDER = "select worker_id from howdah.jobs where id = %s and progress = 50"
GIVEN_UP = "select status = 'completed' from howdah.jobs where id = %s"


def kill(running: Story, id: str) -> Fault:
    pid, began = _holder(running, id), time.monotonic()
    process = next(worker for worker in running.fleet.workers if worker.pid == pid)
    running.fleet.kill(process)
    running.fleet.add_worker()
    return Fault("kill -9 in a transaction", began, time.monotonic(), kills=frozenset({pid}))


def freeze(running: Story, id: str) -> Fault:
    """The frozen worker goes on when another one has done its job."""
    pid, began = _holder(running, id), time.monotonic()
    process = next(worker for worker in running.fleet.workers if worker.pid == pid)
    process.send_signal(signal.SIGSTOP)
    running.wait("another worker completes the job", GIVEN_UP, id)
    process.send_signal(signal.SIGCONT)
    name = "SIGSTOP in a transaction"
    return Fault(name, began, time.monotonic(), silences=frozenset({pid}))


def cut(running: Story, id: str) -> Fault:
    """The connection of the transaction is lost, and with it what it wrote."""
    began = time.monotonic()
    _holder(running, id)
    running.proxy.cut()
    return Fault("connections cut in a transaction", began, time.monotonic())


def _holder(running: Story, id: str) -> int:
    """Wait until the handler lingers; returns the process that runs it."""
    running.wait("the effect is written", f"select exists ({HOLDER})", id)
    return int(str(running.value(HOLDER, id)).split(":")[1])


FAULTS = (kill, freeze, cut)


@pytest.mark.parametrize("job_type", ["linger", "linger_in_thread"])
def test_an_effect_happens_exactly_once(
    job_type: str, own_server: PgServer, tmp_path: Path
) -> None:
    with story([own_server], tmp_path / "story") as running:
        for fault in FAULTS:
            _inject(running, fault, job_type)
        result = running.finish()
    assert len(result.move_log.effects) > len(FAULTS)


def test_effects_and_completions_that_are_committed_apart_are_reported(
    own_server: PgServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STORY_EFFECTS", "apart")
    with story([own_server], tmp_path / "story") as running:
        _inject(running, kill, "linger")
        result = running.drain()
    broken = {finding.partition(":")[0] for finding in check(result)}
    assert broken >= {
        "a_completed_job_has_its_effect_exactly_once",
        "an_effect_is_committed_with_the_completion_of_its_job",
    }


def _inject(running: Story, fault: Callable[[Story, str], Fault], job_type: str) -> None:
    id = running.enqueue(job_type, seconds=LONG)
    running.inject(lambda at_work: fault(at_work, id))
