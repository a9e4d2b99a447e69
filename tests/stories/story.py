"""Story: a fleet that works on a server while faults are injected, and the result.

    with story(servers, folder, seed) as running:
        running.inject(kill_worker)
        running.finish()

After each fault, the story waits until work continues by itself: a job that is enqueued after the
fault is completed (`resumed`), and so is everything older (`caught_up`). At the end all jobs are
drained, every process is stopped, and the checker is called.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import secrets
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from howdah import Queue
from tests.stories import move_log
from tests.stories.checker import check
from tests.stories.history import OK, Fault, Log, read
from tests.stories.operator import set_first_rules
from tests.stories.story_result import StoryResult
from tests.support.fleet import LEASE, Fleet
from tests.support.postgres_server import PgServer
from tests.support.proxy import Proxy
from tests.support.waiting import wait_until

DEADLINE = 90.0  # seconds for work to resume
STUCK = 30.0  # seconds without the end of any job, after which the rest is stuck

LIVE = "status in ('pending', 'claimed', 'running')"


@dataclass(frozen=True)
class FaultOutcome:
    """One fault, and how the fleet recovered from it."""

    name: str
    seconds: float  # how long it lasted
    under_way: int  # live jobs when it began
    resumed: float  # seconds from its end until a new job was done
    caught_up: float  # seconds from its end until everything older was done


class Story:
    """The processes and servers that a fault acts on, and the outcomes so far."""

    def __init__(
        self, servers: Sequence[PgServer], database: str, proxy: Proxy, fleet: Fleet, seed: int
    ) -> None:
        self.server = servers[0]  # the one that accepts writes
        self.servers = servers
        self.database = database
        self.proxy = proxy
        self.fleet = fleet
        self.seed = seed
        self.rng = random.Random(seed)
        self.outcomes: list[FaultOutcome] = []
        self._faults: list[Fault] = []
        self._log = Log(fleet.folder, "probe")
        self._probes = 0

    @property
    def dsn(self) -> str:
        """The DSN of the database past the proxy: faults of the network spare it."""
        return self.server.dsn(self.database)

    def value(self, sql: str, *args: object) -> Any:
        return self.server.value(sql, *args, database=self.database)

    # ── faults ──

    def inject(self, inject: Callable[[Story], Fault]) -> FaultOutcome:
        """Inject a fault, then wait until work continues by itself."""
        under_way = self.value(f"select count(*) from howdah.jobs where {LIVE}")
        fault = inject(self)
        self._faults.append(fault)
        ended_at = self.value("select clock_timestamp()")
        resumed = self._probe(fault)
        self.wait(
            f"everything older than the end of {fault.name} is done",
            f"select not exists (select from howdah.jobs where {LIVE} and created_at < %s)",
            ended_at,
        )
        self.fleet.assert_all_alive()
        outcome = FaultOutcome(
            fault.name,
            seconds=fault.ended - fault.began,
            under_way=under_way,
            resumed=resumed,
            caught_up=time.monotonic() - fault.ended,
        )
        self.outcomes.append(outcome)
        return outcome

    def enqueue(self, job_type: str, *, key: str | None = None, **data: Any) -> str:
        """Enqueue a job with the highest priority; returns its id."""
        self._probes += 1
        data["token"] = f"probe-{self._probes}"
        asked = self._log.ask("enqueue", tokens=[data["token"]])
        sql = "select howdah.enqueue(%s, %s::jsonb, 1000, p_max_attempts => 50, p_key => %s)::text"
        id = self.value(sql, job_type, json.dumps(data), key)
        self._log.answer(asked, OK)
        return id

    def _probe(self, fault: Fault) -> float:
        """Enqueue a job for howdah's workers; returns how long after the fault it ended."""
        self.wait(
            f"a job enqueued after {fault.name} is done",
            "select status = 'completed' from howdah.jobs where id = %s",
            self.enqueue("slow", seconds=0),
        )
        return time.monotonic() - fault.ended

    def start_long_jobs(self, seconds: float) -> None:
        """Give every worker jobs that run so long, and wait until they run."""
        ids = [self.enqueue("slow", seconds=seconds) for _ in range(3 * len(self.fleet.workers))]
        self.wait(
            "long jobs are running",
            "select bool_and(status = 'running') from howdah.jobs where id = any (%s::uuid[])",
            ids,
        )

    def wait(self, what: str, query: str, *args: object) -> None:
        """Wait until the query returns true; fail at once if a process has ended."""
        with self.server.connect(self.database) as connection:

            def holds() -> bool:
                self.fleet.assert_all_alive()
                return connection.execute(query.encode(), args or None).fetchone() == (True,)

            wait_until(holds, f"seed {self.seed}: {what}", deadline=DEADLINE, pause=0.02)

    # ── end ──

    def work(self, jobs: int) -> None:
        """Let the fleet work until so many more jobs have ended."""
        ended = self.value(f"select count(*) from howdah.jobs where not {LIVE}") + jobs
        self.wait(
            f"{ended} jobs are done",
            f"select count(*) >= %s from howdah.jobs where not {LIVE}",
            ended,
        )

    def drain(self) -> StoryResult:
        """Stop the producers, wait until all jobs have ended, stop all; returns the result."""
        self.fleet.stop_producing()
        self._wait_for_the_last_jobs()
        self.fleet.assert_all_alive()
        self.fleet.stop()
        return StoryResult(
            read(self.fleet.folder, self._faults), move_log.read(self.dsn), lease=LEASE
        )

    def _wait_for_the_last_jobs(self) -> None:
        """Wait until no job is live. Where the rest is stuck, return too: the checker finds it."""
        changed_at, live = time.monotonic(), -1
        while live and time.monotonic() < changed_at + STUCK:
            time.sleep(0.05)
            self.fleet.assert_all_alive()
            now = self.value(f"select count(*) from howdah.jobs where {LIVE}")
            if now != live:
                changed_at, live = time.monotonic(), now

    def finish(self) -> StoryResult:
        """Drain, and fail if the checker finds a broken promise."""
        result = self.drain()
        broken = check(result)
        assert not broken, f"seed {self.seed}, {len(broken)} findings: " + "\n".join(broken[:20])
        return result


@contextmanager
def story(
    servers: Sequence[PgServer],
    folder: Path,
    seed: int | None = None,
    *,
    workers: int = 2,
    producers: int = 1,
    per_second: float = 30.0,
) -> Generator[Story]:
    """Start a fleet on a fresh database of these servers, through a proxy."""
    seed = new_seed() if seed is None else seed
    print(f"HOWDAH_SEED={seed}")
    folder.mkdir(exist_ok=True)
    primary, database = servers[0], f"story_{secrets.token_hex(4)}"
    primary.value(f"create database {database}")
    _install(primary.dsn(database))
    move_log.install(primary.dsn(database))
    set_first_rules(primary.dsn(database))
    with Proxy(*(server.port for server in servers)) as proxy:
        direct = primary.dsn(database, [server.port for server in servers])
        fleet = Fleet(folder, primary.dsn(database, proxy.ports), direct, seed)
        try:
            fleet.start(workers=workers, producers=producers, per_second=per_second)
            running = Story(servers, database, proxy, fleet, seed)
            running.work(20)
            yield running
        finally:
            fleet.kill_all()


def new_seed() -> int:
    """Return a new seed, or HOWDAH_SEED to replay a run."""
    seed = os.environ.get("HOWDAH_SEED")
    return int(seed) if seed else secrets.randbelow(1_000_000)


def _install(dsn: str) -> None:
    async def install() -> None:
        queue = Queue(dsn)
        await queue.install()
        await queue.close()

    asyncio.run(install())
