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
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from bench.bar_chart import bar_chart
from bench.command_line import chosen
from bench.machine import commit, machine
from bench.peer import Peer, Plan
from bench.peers.registry import PEERS
from bench.record import Record, now, record_folder, write
from bench.report import report
from bench.resources import measure_step, prepare_resources
from bench.server import Postgres, private_postgres
from bench.turns import steps
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
    with prepare_resources(options.peers, postgres) as resources:
        measurements = [
            measure_step(step, options.plan(step.peer, step.workload), resources)
            for step in steps(options.peers, options.workloads, options.turns)
            if step.peer.name in resources.environments
        ]
        return Record(
            quiet=True,
            trial=options.trial,
            whole=options.whole,
            command=command,
            date=now(),
            commit=commit(),
            machine=machine(),
            postgres=resources.postgres_settings(),
            redis=resources.redis_settings(),
            peers=resources.notes,
            measurements=measurements,
        )


def save(record: Record, folder: Path) -> None:
    """Write the record, its report and its chart."""
    write(record, folder)
    (folder / "summary.md").write_text(report(record))
    (folder / "plot.svg").write_text(bar_chart(record))


def parse(arguments: list[str] | None) -> Options:
    parser = argparse.ArgumentParser(prog="python -m bench.compare", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", type=chosen(PEERS), default=list(PEERS), metavar="PEERS")
    parser.add_argument(
        "--workload", type=chosen(WORKLOADS), default=list(WORKLOADS), metavar="WORKLOADS"
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


if __name__ == "__main__":
    sys.exit(main())
