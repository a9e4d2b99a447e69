"""`howdah worker` accepts a sync queue, with handlers of every kind."""

from __future__ import annotations

from howdah import SyncQueue
from tests.support.processes import worker_process


def test_the_worker_command_runs_the_jobs_of_a_sync_queue(sync: SyncQueue, dsn: str) -> None:
    with worker_process(dsn, "tests.client_sync.app:queue") as worker:
        assert sync.enqueue("double", {"n": 21}).result(timeout=60) == 42
        assert sync.enqueue("half", {"n": 1}).result(timeout=60) == 0.5
        assert sync.enqueue("quadruple", {"n": 3}).result(timeout=60) == 12
        assert sync.enqueue("process_id").result(timeout=60) != worker.pid
