"""Tune: find the best settings of each peer again, and keep a record.

    python -m bench.tune                              every peer: about half an hour
    python -m bench.tune --only graphile_worker,saq   only these
    python -m bench.tune --turns 5                    more turns than three

A peer's settings are its `options`, and those to be tried its `candidates`, in peers/<peer>/. Each
turn measures all of them once, another one first. The report names the fastest, and whether the
comparison uses it. The record is written after each peer, and a run adds to that of the same day,
so peers can be tried one by one.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Generator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from bench.aggregate import SERVER_CPU, WORKER_CPU, aggregate
from bench.command_line import chosen
from bench.machine import commit, describe, machine
from bench.peer import Peer
from bench.peers.registry import PEERS
from bench.record import Measurement, PeerNote, now, record_folder, write_json
from bench.report import cost_cell, table
from bench.resources import Resources, measure_step, prepare_resources
from bench.server import Postgres, private_postgres
from bench.turns import Step
from bench.workloads import WORKLOADS

FILE = "settings.json"
TURNS = 3
MOST_JOBS = 100_000  # per measurement: shorter than in the comparison
AS_FAST = 0.97  # of the fastest: the turns cannot tell such settings apart


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One setting of a peer, measured in every turn."""

    peer: str
    workload: str
    options: dict[str, Any]
    used: bool  # by the comparison
    measurements: list[Measurement]

    @property
    def rate(self) -> float:
        measured = aggregate(self.measurements).get((self.peer, self.workload))
        return measured.median if measured else 0.0


class TuneRecord(msgspec.Struct, frozen=True, kw_only=True):
    command: str
    date: str
    commit: str
    machine: dict[str, str]
    postgres: dict[str, str]
    redis: dict[str, str]
    peers: dict[str, PeerNote]
    settings: list[Setting]

    def groups(self) -> Generator[list[Setting]]:
        """Yield the settings of each peer and workload, the fastest first."""
        for peer in PEERS:
            for workload in WORKLOADS:
                group = [
                    setting
                    for setting in self.settings
                    if (setting.peer, setting.workload) == (peer, workload)
                ]
                if group:
                    yield sorted(group, key=lambda setting: -setting.rate)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.tune", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", type=chosen(PEERS), default=list(PEERS), metavar="PEERS")
    parser.add_argument("--turns", type=int, default=TURNS, metavar="N")
    parser.add_argument("--jobs", type=int, metavar="N", help="at most so many: a trial")
    parser.add_argument("--server", default="embedded", help="`embedded`, or a folder of programs")
    parsed = parser.parse_args(arguments)
    command = shlex.join(["python", "-m", "bench.tune", *sys.argv[1:]])
    with private_postgres(parsed.server) as postgres:
        for name in parsed.only:
            record = run(PEERS[name], parsed.turns, parsed.jobs, postgres, command)
            folder = record_folder(record.date, "settings", trial=parsed.jobs is not None)
            save(with_earlier(record, folder), folder)
            print(report(record))
            print(f"Written to {folder}")
    return 0


def save(record: TuneRecord, folder: Path) -> None:
    write_json(record, folder / FILE)
    (folder / "summary.md").write_text(report(record))


def run(peer: Peer, turns: int, jobs: int | None, postgres: Postgres, command: str) -> TuneRecord:
    """Measure every setting of a peer."""
    with prepare_resources([peer], postgres) as resources:
        return TuneRecord(
            command=command,
            date=now(),
            commit=commit(),
            machine=machine(),
            postgres=resources.postgres_settings(),
            redis=resources.redis_settings(),
            peers=resources.notes,
            settings=[
                setting
                for workload in (peer.candidates if resources.environments else ())
                for setting in try_settings(peer, workload, turns, jobs, resources)
            ],
        )


def try_settings(
    peer: Peer, workload: str, turns: int, jobs: int | None, resources: Resources
) -> list[Setting]:
    """Measure the settings of one workload, turn by turn."""
    options: list[Mapping[str, Any]] = [{}, *peer.candidates[workload]]
    measured: list[list[Measurement]] = [[] for _ in options]
    plan = peer.workloads[workload]
    plan = replace(plan, jobs=min(plan.jobs, jobs or MOST_JOBS))
    for turn in range(1, turns + 1):
        for number in range(len(options)):
            candidate = (number + turn - 1) % len(options)
            changed = replace(plan, options={**plan.options, **options[candidate]})
            measured[candidate].append(
                measure_step(
                    Step(turn, peer, workload), changed, resources, str(dict(options[candidate]))
                )
            )
    return [
        Setting(
            peer=peer.name,
            workload=workload,
            options={**peer.options, **plan.options, **option},
            used=not option,
            measurements=repeated,
        )
        for option, repeated in zip(options, measured, strict=True)
    ]


def with_earlier(record: TuneRecord, folder: Path) -> TuneRecord:
    """Add the peers that the record of the same day has and this run has not measured."""
    if not (folder / FILE).exists():
        return record
    earlier = msgspec.json.decode((folder / FILE).read_bytes(), type=TuneRecord)
    kept = [setting for setting in earlier.settings if setting.peer not in record.peers]
    return msgspec.structs.replace(
        record,
        peers={**earlier.peers, **record.peers},
        redis=record.redis or earlier.redis,
        settings=[*kept, *record.settings],
    )


def report(record: TuneRecord) -> str:
    lines = describe(record.command, record.commit, record.machine, record.postgres)
    parts = [
        f"# Settings of the peers, {record.date}",
        "\n".join(f"- {line}" for line in lines),
        "Jobs per second: median (lowest to highest). CPU time per job: server + worker.",
    ]
    for group in record.groups():
        peer, workload = record.peers[group[0].peer], WORKLOADS[group[0].workload]
        versions = ", ".join(f"{name} {version}" for name, version in peer.versions.items())
        parts += [f"## {peer.title}, {workload.title} ({versions})", _rows(group), verdict(group)]
    problems = [
        f"- {record.peers[setting.peer].title}, {text(setting, group)}: {measurement.problem}"
        for group in record.groups()
        for setting in group
        for measurement in setting.measurements
        if measurement.problem
    ]
    problems += [
        f"- {note.title}: {note.problem}" for note in record.peers.values() if note.problem
    ]
    if problems:
        parts += ["## What could not be measured", "\n".join(problems)]
    return "\n\n".join(parts) + "\n"


def text(setting: Setting, group: list[Setting]) -> str:
    """Name the options of a setting, without those that are the same in the whole group."""
    varying = [
        name
        for name in dict.fromkeys(name for other in group for name in other.options)
        if any(other.options.get(name) != setting.options.get(name) for other in group)
    ]
    named = [f"{name} {setting.options[name]}" for name in varying if name in setting.options]
    return ", ".join(named) or "defaults"


def _rows(group: list[Setting]) -> str:
    rows: list[list[str]] = []
    for setting in group:
        aggregates = aggregate(setting.measurements)
        rate = aggregates.get((setting.peer, setting.workload))
        shown = "-" if rate is None else f"{rate.median:,.0f} ({rate.low:,.0f}-{rate.high:,.0f})"
        cpu = cost_cell(aggregates, setting.peer, setting.workload, [SERVER_CPU, WORKER_CPU])
        rows.append([text(setting, group), shown, cpu, "used" if setting.used else ""])
    return table(["setting", "jobs/s", "CPU, µs", ""], rows)


def verdict(group: list[Setting]) -> str:
    """Say whether the comparison uses the best setting. The fastest comes first."""
    used = next(setting for setting in group if setting.used)
    fastest = group[0]
    if used is fastest:
        return "The comparison uses the fastest."
    part, name = used.rate / fastest.rate, text(fastest, group)
    if part >= AS_FAST:
        return f"The comparison uses one as fast as the fastest: {part:.0%} of {name}."
    return f"**The comparison uses one with {part:.0%} of the rate of {name}.**"


if __name__ == "__main__":
    sys.exit(main())
