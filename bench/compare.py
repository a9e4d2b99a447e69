"""Compare: measure howdah and its peers in one run, and keep a record.

    python -m bench.compare                          everything: three quarters of an hour
    python -m bench.compare --quick                  everything once with few jobs: does it work?
    python -m bench.compare --only howdah,pgqueuer --workload drain_1,pickup
    python -m bench.compare --server FOLDER          the PostgreSQL whose programs are in FOLDER

The peers take short turns, in the order of turns.py. A run of everything, or one that `--record`
names, is kept in bench/records/. Any other run is a trial, and so is a run with fewer jobs: it goes
to .bench/records/ and shows only that the benchmark works.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from bench import redis as redis_server
from bench.bar_chart import bar_chart
from bench.driver_process import DriverFailed, start_driver
from bench.install import Environment, Unavailable, install
from bench.machine import commit, machine
from bench.measure.prepared_peer import Timing, prepare
from bench.measure.workload import measure
from bench.peer import Peer, Plan
from bench.peers.registry import PEERS
from bench.progress import show_progress
from bench.record import Measurement, PeerNote, Record, note, record_folder, write
from bench.redis import Redis, private_redis
from bench.report import report
from bench.server import Postgres, private_postgres
from bench.turns import Step, steps
from bench.workloads import WORKLOADS

QUICK_JOBS = 2000
QUICK_PICKUPS = 40


class Options(NamedTuple):
    """What the command line asks for."""

    peers: list[Peer]
    workloads: list[str]
    turns: int | None
    jobs: int | None
    quick: bool
    server: str
    name: str
    trial: bool
    whole: bool

    def plan(self, peer: Peer, workload: str) -> Plan:
        plan = peer.workloads[workload]
        limit = self.jobs or (QUICK_JOBS if self.quick else plan.jobs)
        if WORKLOADS[workload].kind == "pickup":
            limit = QUICK_PICKUPS if self.quick else plan.jobs
        return replace(plan, jobs=min(plan.jobs, limit))


class Resources(NamedTuple):
    """The servers and the peers' environments."""

    postgres: Postgres
    redis: Redis | None
    environments: dict[str, Environment]


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    with private_postgres(options.server) as postgres:
        record = run(
            options, postgres, shlex.join(["python", "-m", "bench.compare", *sys.argv[1:]])
        )
    folder = record_folder(record.date, options.name, trial=record.trial)
    save(record, folder)
    print(report(record))
    print(f"Written to {folder}")
    return 1 if any(measurement.problem for measurement in record.measurements) else 0


def run(options: Options, postgres: Postgres, command: str) -> Record:
    """Measure everything that the options name, on this server."""
    redis, no_redis = None, ""
    with ExitStack() as stack:
        if any(peer.store == "redis" for peer in options.peers):
            try:
                redis = stack.enter_context(private_redis())
            except Unavailable as problem:
                no_redis = str(problem)
        environments: dict[str, Environment] = {}
        notes: dict[str, PeerNote] = {}
        for peer in options.peers:
            try:
                if peer.store == "redis" and redis is None:
                    raise Unavailable(no_redis)
                environments[peer.name] = environment = install(peer)
                notes[peer.name] = note(peer, versions(peer, environment))
            except (Unavailable, DriverFailed) as problem:
                environments.pop(peer.name, None)
                notes[peer.name] = note(peer, {}, str(problem))
                show_progress(f"{peer.title} cannot be measured: {problem}")
        measurements = _measurements(options, Resources(postgres, redis, environments))
        return Record(
            quiet=True,
            trial=options.trial,
            whole=options.whole,
            command=command,
            date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            commit=commit(),
            machine=machine(),
            postgres={"version": postgres.version(), **postgres.settings()},
            redis={"version": redis.version, **redis_server.SETTINGS} if redis else {},
            peers=notes,
            measurements=list(measurements),
        )


def save(record: Record, folder: Path) -> None:
    """Write the record, its report and its chart."""
    write(record, folder)
    (folder / "summary.md").write_text(report(record))
    (folder / "plot.svg").write_text(bar_chart(record))


def versions(peer: Peer, environment: Environment) -> dict[str, str]:
    """Return the versions of the packages in the peer's environment."""
    with start_driver(environment, "versions", {}) as driver:
        installed: dict[str, str] = {**driver.read("versions"), **environment.versions}
    wanted = [name.split("@")[0].split("=")[0].split("[")[0] for name in peer.packages]
    return {name: installed[name] for name in (peer.kind, *wanted, *EXTRA_PACKAGES[peer.is_howdah])}


EXTRA_PACKAGES = {True: ("asyncpg", "uvloop", "msgspec"), False: ()}


def _measurements(options: Options, resources: Resources) -> Generator[Measurement]:
    for step in steps(options.peers, options.workloads, options.turns):
        if step.peer.name in resources.environments:
            yield _measurement(step, options.plan(step.peer, step.workload), resources)


def _measurement(step: Step, plan: Plan, resources: Resources) -> Measurement:
    turn, peer, workload = step
    timing, problem = Timing(plan.jobs), None
    environment = resources.environments[peer.name]
    try:
        with prepare(peer, environment, resources.postgres, resources.redis) as prepared:
            timing = measure(workload, plan, prepared)
    except Exception as error:  # the other peers are still measured
        problem = f"{type(error).__name__}: {error}"
    show_progress(f"{turn} {workload:16} {peer.title:16} {_outcome(timing, problem)}")
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
    if timing.pickups_ms:
        return f"{sorted(timing.pickups_ms)[len(timing.pickups_ms) // 2]:10.2f} ms"
    return f"{timing.jobs / timing.seconds:10,.0f} jobs/s"


def parse(arguments: list[str] | None) -> Options:
    parser = argparse.ArgumentParser(prog="python -m bench.compare", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", type=_chosen(PEERS), default=list(PEERS), metavar="PEERS")
    parser.add_argument(
        "--workload", type=_chosen(WORKLOADS), default=list(WORKLOADS), metavar="WORKLOADS"
    )
    parser.add_argument("--turns", type=int, metavar="N", help="instead of those in turns.py")
    parser.add_argument("--jobs", type=int, metavar="N", help="at most so many per measurement")
    parser.add_argument(
        "--server",
        default="embedded",
        help="`embedded`, or a folder of programs",
    )
    parser.add_argument("--record", metavar="NAME", help="the record's name after its date")
    parser.add_argument("--quick", action="store_true", help="few jobs, one turn")
    parsed = parser.parse_args(arguments)
    whole = parsed.only == list(PEERS) and parsed.workload == list(WORKLOADS)
    suffix = "" if parsed.server == "embedded" else "-other-postgres"
    return Options(
        peers=[PEERS[name] for name in parsed.only],
        workloads=parsed.workload,
        turns=parsed.turns or (1 if parsed.quick else None),
        jobs=parsed.jobs,
        quick=parsed.quick,
        server=parsed.server,
        name=parsed.record or f"peers{suffix}",
        trial=parsed.quick or bool(parsed.jobs or parsed.turns) or not (whole or parsed.record),
        whole=whole,
    )


def _chosen(known: Iterable[str]) -> Callable[[str], list[str]]:
    def chosen(text: str) -> list[str]:
        names = text.split(",")
        if unknown := [name for name in names if name not in known]:
            raise argparse.ArgumentTypeError(
                f"{unknown[0]!r} is unknown: choose from {', '.join(known)}"
            )
        return names

    return chosen


if __name__ == "__main__":
    sys.exit(main())
