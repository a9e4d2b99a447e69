"""Stress: take howdah and its peers through a clean phase, a stress and the recovery.

    python -m bench.stress                                   everything: about 20 minutes
    python -m bench.stress --quick                           short phases: does it work?
    python -m bench.stress --only howdah,pgqueuer --stress chaos
    python -m bench.stress --singly                          an enqueue call for each job
    python -m bench.stress --server FOLDER                   the PostgreSQL whose programs are there

A run of everything, or one that `--record` names, is kept in bench/records/. Any other run is a
trial: it goes to .bench/records/. The exit code is 1 if a run could not be made, or lost a job.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from bench.command_line import chosen
from bench.machine import commit, machine
from bench.peer import Peer
from bench.peers.registry import PEERS
from bench.progress import show_progress
from bench.record import now, record_folder
from bench.resources import Resources, prepare_resources
from bench.server import Postgres, private_postgres, restartable_postgres
from bench.stress.charts import chart
from bench.stress.measure import measure
from bench.stress.record import StressRecord, StressRun, write
from bench.stress.report import report
from bench.stress.stresses import FULL, PER_CALL, QUICK, STRESSES, Scale, Stress

STRESSED = [peer.name for peer in PEERS.values() if peer.stressed]


class Options(NamedTuple):
    """What the command line asks for."""

    peers: list[Peer]
    stresses: list[Stress]
    per_call: int
    scale: Scale
    server: str
    name: str
    trial: bool


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    with private_postgres(options.server) as postgres:
        command = shlex.join(["python", "-m", "bench.stress", *sys.argv[1:]])
        record = run(options, postgres, command)
    folder = record_folder(record.date, options.name, trial=record.trial)
    save(record, folder)
    print(report(record))
    print(f"Written to {folder}")
    return exit_code(record)


def run(options: Options, postgres: Postgres, command: str) -> StressRecord:
    """Measure everything that the options name. Only a run with chaos has a server of its own."""
    with prepare_resources(options.peers, postgres) as resources:
        return StressRecord(
            trial=options.trial,
            command=command,
            date=now(),
            commit=commit(),
            machine=machine(),
            postgres=resources.postgres_settings(),
            seconds=options.scale.as_seconds(),
            per_call=options.per_call,
            peers=resources.notes,
            recovery={peer.name: peer.stressed.recovery for peer in options.peers if peer.stressed},
            runs=[
                found for stress in options.stresses for found in _runs(stress, options, resources)
            ],
        )


def _runs(stress: Stress, options: Options, resources: Resources) -> list[StressRun]:
    runs: list[StressRun] = []
    with _server(stress, resources.postgres) as server:
        for peer in options.peers:
            if environment := resources.environments.get(peer.name):
                found = measure(peer, environment, stress, options.scale, server)
                show_progress(f"{stress.name:20} {peer.title:16} {_outcome(found)}")
                runs.append(found)
    return runs


def _server(stress: Stress, postgres: Postgres) -> AbstractContextManager[Postgres]:
    return restartable_postgres() if stress.chaos else nullcontext(postgres)


def _outcome(found: StressRun) -> str:
    if found.problem is not None:
        return f"does not count: {found.problem}"
    rates = " -> ".join(f"{phase.rate:,.0f}" for phase in found.phases)
    return f"{rates} jobs/s"


def save(record: StressRecord, folder: Path) -> None:
    """Write the record, its report and its chart."""
    write(record, folder)
    (folder / "summary.md").write_text(report(record))
    (folder / "plot.svg").write_text(chart(record))


def exit_code(record: StressRecord) -> int:
    lost = any(found.chaos is not None and found.chaos.lost for found in record.runs)
    return int(lost or any(found.problem for found in record.runs))


def parse(arguments: list[str] | None) -> Options:
    parser = argparse.ArgumentParser(prog="python -m bench.stress", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", type=chosen(STRESSED), default=STRESSED, metavar="PEERS")
    parser.add_argument(
        "--stress", type=chosen(STRESSES), default=list(STRESSES), metavar="STRESSES"
    )
    parser.add_argument(
        "--singly", action="store_true", help=f"a call for each job, not for {PER_CALL}"
    )
    parser.add_argument("--server", default="embedded", help="`embedded`, or a folder of programs")
    parser.add_argument("--record", metavar="NAME", help="the record's name after its date")
    parser.add_argument("--quick", action="store_true", help="short phases")
    parsed = parser.parse_args(arguments)
    whole = parsed.only == STRESSED and parsed.stress == list(STRESSES)
    suffix = "-singly" * parsed.singly + "-other-postgres" * (parsed.server != "embedded")
    per_call = 1 if parsed.singly else PER_CALL
    return Options(
        peers=[PEERS[name] for name in parsed.only],
        stresses=[replace(STRESSES[name], per_call=per_call) for name in parsed.stress],
        per_call=per_call,
        scale=QUICK if parsed.quick else FULL,
        server=parsed.server,
        name=parsed.record or f"stress{suffix}",
        trial=parsed.quick or not (whole or parsed.record),
    )


if __name__ == "__main__":
    sys.exit(main())
