"""Resources: the servers and the peers' environments of a run, and one measurement with them.

Comes before  compare.py and tune.py

A peer that cannot be installed has a note that says why, and no environment. A measurement that
fails is kept with its problem, and the others are still made.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from bench import redis as redis_server
from bench.driver_process import DriverFailed, start_driver
from bench.install import Environment, Unavailable, install
from bench.measure.prepared_peer import Timing, prepare
from bench.measure.workload import measure
from bench.peer import Peer, Plan
from bench.progress import show_progress
from bench.record import Measurement, PeerNote, note
from bench.redis import Redis, private_redis
from bench.server import Postgres
from bench.turns import Step

EXTRA_PACKAGES = {True: ("asyncpg", "uvloop", "msgspec"), False: ()}


@dataclass(frozen=True, slots=True)
class Resources:
    """The servers, and by peer its environment and its note."""

    postgres: Postgres
    redis: Redis | None
    environments: dict[str, Environment]
    notes: dict[str, PeerNote]

    def postgres_settings(self) -> dict[str, str]:
        return {"version": self.postgres.version(), **self.postgres.settings()}

    def redis_settings(self) -> dict[str, str]:
        return {"version": self.redis.version, **redis_server.SETTINGS} if self.redis else {}


@contextmanager
def prepare_resources(
    peers: Sequence[Peer],
    postgres: Postgres,
    installer: Callable[[Peer], Environment] = install,
) -> Generator[Resources]:
    """Start Redis if a peer needs it, and install every peer."""
    redis, no_redis = None, ""
    with ExitStack() as stack:
        if any(peer.store == "redis" for peer in peers):
            try:
                redis = stack.enter_context(private_redis())
            except Unavailable as problem:
                no_redis = str(problem)
        resources = Resources(postgres, redis, {}, {})
        for peer in peers:
            try:
                if peer.store == "redis" and redis is None:
                    raise Unavailable(no_redis)
                environment = installer(peer)
                resources.notes[peer.name] = note(peer, versions(peer, environment))
                resources.environments[peer.name] = environment
            except (Unavailable, DriverFailed) as problem:
                resources.notes[peer.name] = note(peer, {}, str(problem))
                show_progress(f"{peer.title} cannot be measured: {problem}")
        yield resources


def versions(peer: Peer, environment: Environment) -> dict[str, str]:
    """Return the versions of the packages in the peer's environment."""
    with start_driver(environment, "versions", {}) as driver:
        installed: dict[str, str] = {**driver.read("versions"), **environment.versions}
    wanted = [name.split("@")[0].split("=")[0].split("[")[0] for name in peer.packages]
    return {name: installed[name] for name in (peer.kind, *wanted, *EXTRA_PACKAGES[peer.is_howdah])}


def measure_step(step: Step, plan: Plan, resources: Resources, about: str = "") -> Measurement:
    """Make one measurement; `about` is added to its line of progress."""
    turn, peer, workload = step
    timing, problem = Timing(plan.jobs), None
    environment = resources.environments[peer.name]
    try:
        with prepare(peer, environment, resources.postgres, resources.redis) as prepared:
            timing = measure(workload, plan, prepared)
    except Exception as error:  # the other peers are still measured
        problem = f"{type(error).__name__}: {error}"
    show_progress(f"{turn} {workload:16} {peer.title:16} {_outcome(timing, problem)} {about}")
    return Measurement(
        peer=peer.name,
        workload=workload,
        turn=turn,
        jobs=plan.jobs,
        processes=plan.processes,
        seconds=round(timing.seconds, 6),
        pickups_ms=tuple(round(ms, 4) for ms in timing.pickups_ms),
        problem=problem,
        **_usage_per_job(timing),
    )


def _usage_per_job(timing: Timing) -> dict[str, float]:
    """Return what a job cost: CPU time of server and worker in microseconds, and bytes of WAL."""
    if (usage := timing.usage) is None:
        return {}
    costs = {
        "server_cpu_us": round(usage.server_cpu * 1e6 / timing.jobs, 3),
        "worker_cpu_us": round(usage.worker_cpu * 1e6 / timing.jobs, 3),
    }
    if usage.wal_bytes is not None:
        costs["wal_bytes"] = round(usage.wal_bytes / timing.jobs, 1)
    return costs


def _outcome(timing: Timing, problem: str | None) -> str:
    if problem is not None:
        return f"does not count: {problem}"
    cost = _usage_per_job(timing)
    cpu = f"{cost['server_cpu_us']:8.1f} + {cost['worker_cpu_us']:.1f} µs" if cost else ""
    if timing.pickups_ms:
        return f"{sorted(timing.pickups_ms)[len(timing.pickups_ms) // 2]:10.2f} ms    {cpu}"
    return f"{timing.jobs / timing.seconds:10,.0f} jobs/s{cpu}"
