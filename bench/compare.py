"""Compare: measure howdah and its peers in one run, and write the record down.

    python -m bench.compare                          everything: half an hour
    python -m bench.compare --quick                  everything once with few jobs: does it work?
    python -m bench.compare --only howdah,pgqueuer --work drain_1,pickup
    python -m bench.compare --server FOLDER          the PostgreSQL whose programs are in FOLDER

The peers take turns within each work, in another order in each repetition, so that a moment in
which the machine was slow hits nobody alone. What is soon done and much compared has three turns
in each repetition: the same peer was twice as fast a minute later. A run of everything, or one
that is given a name with `--record`, is kept in bench/records/. Any other, and any with fewer
jobs, is a trial: it goes below .bench/, and its numbers say little.
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
from bench.install import GROUND, Environment, Unavailable, install
from bench.machine import commit, machine
from bench.measure import Taken, measure, prepared
from bench.peer import Peer, Plan
from bench.peers.roster import ROSTER
from bench.plot import plot
from bench.process import Broken, started
from bench.record import RECORDS, Measurement, PeerNote, Record, note, write
from bench.redis import Redis, private_redis
from bench.report import report
from bench.server import Postgres, private_postgres
from bench.works import WORKS

QUICK_JOBS = 2000
QUICK_PICKUPS = 40
TURNS = {"enqueue_single": 3, "drain_1": 3, "drain_16": 3, "pickup": 3}  # per repetition; else one


class Choice(NamedTuple):
    """What the command line asks for."""

    peers: list[Peer]
    works: list[str]
    repetitions: int
    jobs: int | None
    quick: bool
    server: str
    name: str
    trial: bool
    whole: bool

    def plan(self, peer: Peer, work: str) -> Plan:
        plan = peer.works[work]
        limit = self.jobs or (QUICK_JOBS if self.quick else plan.jobs)
        if WORKS[work].kind == "pickup":
            limit = QUICK_PICKUPS if self.quick else plan.jobs
        return replace(plan, jobs=min(plan.jobs, limit))

    def turns(self, work: str) -> int:
        return 1 if self.quick else TURNS.get(work, 1)


class Stage(NamedTuple):
    """What is there to measure with."""

    postgres: Postgres
    redis: Redis | None
    environments: dict[str, Environment]


def main(arguments: list[str] | None = None) -> int:
    choice = parse(arguments)
    with private_postgres(choice.server) as postgres:
        record = run(choice, postgres, shlex.join(["python", "-m", "bench.compare", *sys.argv[1:]]))
    folder = (GROUND / "records" if record.trial else RECORDS) / f"{record.date[:10]}-{choice.name}"
    publish(record, folder)
    print(report(record))
    print(f"Written to {folder}")
    return 1 if any(one.problem for one in record.measurements) else 0


def run(choice: Choice, postgres: Postgres, command: str) -> Record:
    """Measure everything that was chosen on this server."""
    redis, no_redis = None, ""
    with ExitStack() as stack:
        if any(peer.store == "redis" for peer in choice.peers):
            try:
                redis = stack.enter_context(private_redis())
            except Unavailable as problem:
                no_redis = str(problem)
        environments: dict[str, Environment] = {}
        notes: dict[str, PeerNote] = {}
        for peer in choice.peers:
            try:
                if peer.store == "redis" and redis is None:
                    raise Unavailable(no_redis)
                environments[peer.name] = environment = install(peer)
                notes[peer.name] = note(peer, versions(peer, environment))
            except (Unavailable, Broken) as problem:
                environments.pop(peer.name, None)
                notes[peer.name] = note(peer, {}, str(problem))
                _tell(f"{peer.title} cannot take part: {problem}")
        measurements = _measurements(choice, Stage(postgres, redis, environments))
        return Record(
            trial=choice.trial,
            whole=choice.whole,
            command=command,
            date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            commit=commit(),
            machine=machine(),
            postgres={"version": postgres.version(), **postgres.settings()},
            redis={"version": redis.version, **redis_server.SETTINGS} if redis else {},
            peers=notes,
            measurements=list(measurements),
        )


def publish(record: Record, folder: Path) -> None:
    """Write down the numbers, the text and the picture."""
    write(record, folder)
    (folder / "summary.md").write_text(report(record))
    (folder / "plot.svg").write_text(plot(record))


def versions(peer: Peer, environment: Environment) -> dict[str, str]:
    """Ask the peer's own environment what is at work there."""
    with started(environment, "versions", {}) as driver:
        found: dict[str, str] = {**driver.hear("versions"), **environment.versions}
    wanted = [name.split("@")[0].split("=")[0].split("[")[0] for name in peer.packages]
    return {name: found[name] for name in (peer.kind, *wanted, *OURS[peer.is_howdah])}


OURS = {True: ("asyncpg", "uvloop", "msgspec"), False: ()}


def _measurements(choice: Choice, stage: Stage) -> Generator[Measurement]:
    for repetition in range(1, choice.repetitions + 1):
        for work in choice.works:
            for peer in in_turns(choice.peers, repetition, choice.turns(work)):
                if work in peer.works and peer.name in stage.environments:
                    yield _measurement(peer, work, choice.plan(peer, work), repetition, stage)


def in_turns(peers: list[Peer], repetition: int, turns: int) -> Generator[Peer]:
    """Let everybody have so many turns, and let another one begin each time."""
    for turn in range(turns):
        first = (repetition - 1 + turn) % len(peers)
        yield from (*peers[first:], *peers[:first])


def _measurement(peer: Peer, work: str, plan: Plan, repetition: int, stage: Stage) -> Measurement:
    taken, problem = Taken(plan.jobs), None
    environment = stage.environments[peer.name]
    try:
        with prepared(peer, environment, stage.postgres, stage.redis) as ground:
            taken = measure(work, plan, ground)
    except Exception as error:  # whatever goes wrong with one, the others take their turn
        problem = f"{type(error).__name__}: {error}"
    _tell(f"{repetition} {work:15} {peer.title:16} {_said(taken, problem)}")
    return Measurement(
        peer=peer.name,
        work=work,
        repetition=repetition,
        jobs=plan.jobs,
        processes=plan.processes,
        seconds=round(taken.seconds, 6),
        pickups_ms=tuple(round(ms, 4) for ms in taken.pickups_ms),
        problem=problem,
    )


def _said(taken: Taken, problem: str | None) -> str:
    if problem is not None:
        return f"does not count: {problem}"
    if taken.pickups_ms:
        return f"{sorted(taken.pickups_ms)[len(taken.pickups_ms) // 2]:10.2f} ms"
    return f"{taken.jobs / taken.seconds:10,.0f} jobs/s"


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def parse(arguments: list[str] | None) -> Choice:
    parser = argparse.ArgumentParser(prog="python -m bench.compare", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", type=_chosen(ROSTER), default=list(ROSTER), metavar="PEERS")
    parser.add_argument("--work", type=_chosen(WORKS), default=list(WORKS), metavar="WORKS")
    parser.add_argument("--repetitions", type=int, metavar="N", help="3, or 1 when quick")
    parser.add_argument("--jobs", type=int, metavar="N", help="no more jobs than this at once")
    parser.add_argument("--server", default="embedded", help="`embedded`, or a folder of programs")
    parser.add_argument("--record", metavar="NAME", help="the record's name after its date")
    parser.add_argument("--quick", action="store_true", help="few jobs, one repetition")
    said = parser.parse_args(arguments)
    whole = said.only == list(ROSTER) and said.work == list(WORKS)
    elsewhere = "" if said.server == "embedded" else "-other-postgres"
    return Choice(
        peers=[ROSTER[name] for name in said.only],
        works=said.work,
        repetitions=said.repetitions or (1 if said.quick else 3),
        jobs=said.jobs,
        quick=said.quick,
        server=said.server,
        name=said.record or f"peers{elsewhere}",
        trial=said.quick or bool(said.jobs) or not (whole or said.record),
        whole=whole,
    )


def _chosen(known: Iterable[str]) -> Callable[[str], list[str]]:
    def chosen(text: str) -> list[str]:
        names = text.split(",")
        if unknown := [name for name in names if name not in known]:
            raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(known)}")
        return names

    return chosen


if __name__ == "__main__":
    sys.exit(main())
