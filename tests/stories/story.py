"""Story: a fleet at work on a server of its own, faults that are done to it, and what came of it.

    with story(server, folder, seed) as told:
        told.suffer(kill_worker)
        told.finish()

After each fault the story waits until work goes on by itself: a job handed over when the fault
is over is done (`resumed`), and so is everything that was under way (`caught_up`). At the end
everything is drained, every process stops in order, and the checker is asked.
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
from tests.stories import trail
from tests.stories.checker import check
from tests.stories.facts import Facts
from tests.stories.fleet import LEASE, Fleet
from tests.stories.history import OK, Fault, Log, read
from tests.stories.proxy import Proxy
from tests.stories.server import PgServer

DEADLINE = 90.0  # seconds after which work that has not resumed never will

LIVE = "status in ('pending', 'claimed', 'running')"


@dataclass(frozen=True)
class Suffered:
    """One fault, and how the fleet came through it."""

    name: str
    seconds: float  # how long it lasted
    under_way: int  # live jobs when it began
    resumed: float  # seconds from its end until a new job was done
    caught_up: float  # seconds from its end until everything older was done


class Story:
    """What a fault may act on, and what is known of the story so far."""

    def __init__(
        self, servers: Sequence[PgServer], database: str, proxy: Proxy, fleet: Fleet, seed: int
    ) -> None:
        self.server = servers[0]  # the one that takes writes
        self.servers = servers
        self.database = database
        self.proxy = proxy
        self.fleet = fleet
        self.seed = seed
        self.chance = random.Random(seed)
        self.suffered: list[Suffered] = []
        self._faults: list[Fault] = []
        self._log = Log(fleet.folder, "probe")
        self._probes = 0

    @property
    def dsn(self) -> str:
        """The way to the database that no fault of the network touches."""
        return self.server.dsn(self.database)

    def value(self, sql: str, *args: object) -> Any:
        return self.server.value(sql, *args, database=self.database)

    # ── faults ──

    def suffer(self, inject: Callable[[Story], Fault]) -> Suffered:
        """Let a fault happen, then wait until everything goes on by itself."""
        under_way = self.value(f"select count(*) from howdah.jobs where {LIVE}")
        fault = inject(self)
        self._faults.append(fault)
        healed_at = self.value("select clock_timestamp()")
        resumed = self._probe(fault)
        self.wait(
            f"everything older than the end of {fault.name} is done",
            f"select not exists (select from howdah.jobs where {LIVE} and created_at < %s)",
            healed_at,
        )
        self.fleet.all_alive()
        suffered = Suffered(
            fault.name,
            seconds=fault.healed - fault.began,
            under_way=under_way,
            resumed=resumed,
            caught_up=time.monotonic() - fault.healed,
        )
        self.suffered.append(suffered)
        return suffered

    def enqueue(self, job_type: str, **data: Any) -> str:
        """Hand over a job that goes before all others; returns its id."""
        self._probes += 1
        data["token"] = f"probe-{self._probes}"
        asked = self._log.ask("enqueue", tokens=[data["token"]])
        sql = "select howdah.enqueue(%s, %s::jsonb, 1000, p_max_attempts => 50)::text"
        id = self.value(sql, job_type, json.dumps(data))
        self._log.answer(asked, OK)
        return id

    def _probe(self, fault: Fault) -> float:
        """Hand over a job that only workers take; returns how long after the fault it was done."""
        self.wait(
            f"a job handed over after {fault.name} is done",
            "select status = 'completed' from howdah.jobs where id = %s",
            self.enqueue("slow", seconds=0),
        )
        return time.monotonic() - fault.healed

    def start_long_jobs(self, seconds: float) -> None:
        """Have every worker at work on something that takes so long."""
        ids = [self.enqueue("slow", seconds=seconds) for _ in range(3 * len(self.fleet.workers))]
        self.wait(
            "long jobs are at work",
            "select bool_and(status = 'running') from howdah.jobs where id = any (%s::uuid[])",
            ids,
        )

    def wait(self, what: str, question: str, *args: object) -> None:
        until = time.monotonic() + DEADLINE
        with self.server.connect(self.database) as connection:
            while connection.execute(question.encode(), args or None).fetchone() != (True,):
                self.fleet.all_alive()
                assert time.monotonic() < until, f"seed {self.seed}: not within reach: {what}"
                time.sleep(0.02)

    # ── the end ──

    def work(self, jobs: int) -> None:
        """Let the fleet work until so many more jobs have ended."""
        ended = self.value(f"select count(*) from howdah.jobs where not {LIVE}") + jobs
        self.wait(
            f"{ended} jobs are done",
            f"select count(*) >= %s from howdah.jobs where not {LIVE}",
            ended,
        )

    def come_to_rest(self) -> Facts:
        """Hand over no more, let everything end, stop everybody; returns all that is known."""
        self.fleet.stop_producing()
        self.wait("nothing is left", f"select not exists (select from howdah.jobs where {LIVE})")
        self.fleet.all_alive()
        self.fleet.stop()
        return Facts(read(self.fleet.folder, self._faults), trail.follow(self.dsn), lease=LEASE)

    def finish(self) -> Facts:
        """Come to rest, and ask the checker."""
        facts = self.come_to_rest()
        broken = check(facts)
        assert not broken, f"seed {self.seed}, {len(broken)} findings: " + "\n".join(broken[:20])
        return facts


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
    """Set a fleet to work on a fresh database of these servers, through a proxy."""
    seed = new_seed() if seed is None else seed
    print(f"HOWDAH_SEED={seed}")
    folder.mkdir(exist_ok=True)
    primary, database = servers[0], f"story_{secrets.token_hex(4)}"
    primary.value(f"create database {database}")
    _install(primary.dsn(database))
    trail.lay(primary.dsn(database))
    with Proxy(*(server.port for server in servers)) as proxy:
        direct = primary.dsn(database, [server.port for server in servers])
        fleet = Fleet(folder, primary.dsn(database, proxy.ports), direct, seed)
        try:
            fleet.start(workers=workers, producers=producers, per_second=per_second)
            told = Story(servers, database, proxy, fleet, seed)
            told.work(20)
            yield told
        finally:
            fleet.kill_all()


def new_seed() -> int:
    """Choose a seed, or take the one that is to be replayed."""
    given = os.environ.get("HOWDAH_SEED")
    return int(given) if given else secrets.randbelow(1_000_000)


def _install(dsn: str) -> None:
    async def install() -> None:
        queue = Queue(dsn)
        await queue.install()
        await queue.close()

    asyncio.run(install())
