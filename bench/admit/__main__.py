"""Admit: measure keys, order, limits, rates and fair share, and keep a record.

    python -m bench.admit                          everything: about twenty minutes
    python -m bench.admit --quick                  everything once with few jobs: does it work?
    python -m bench.admit --only drains,peers      some parts
    python -m bench.admit --peers pgqueuer,dbos    howdah and these peers
    python -m bench.admit --server FOLDER          the PostgreSQL whose programs are in FOLDER

A run of everything, or one that `--record` names, is kept in bench/records/. Any other run is a
trial: it goes to .bench/records/. The record is written after every part. The exit code is 1 if
something could not be measured.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from bench.admit import fair
from bench.admit.check import check
from bench.admit.claim import beside_waiting
from bench.admit.peers import CONTENDERS, HOWDAH, PEERS, install
from bench.admit.rate import starts_per_second
from bench.admit.record import AdmitRecord, Measured, write
from bench.admit.report import report
from bench.admit.rules import COMPARED, FAIR, LIMITED, RATED, RATED_PEERS, Rule
from bench.admit.sizes import FULL, QUICK, Sizes
from bench.admit.snapshot import beside_snapshot
from bench.admit.turns import (
    JobsOfDrains,
    Step,
    rotated,
    steps_of_howdah,
    steps_of_peers,
    variant_of,
)
from bench.admit.variants import Variant
from bench.case_record import Curve
from bench.command_line import chosen
from bench.line_chart import line_chart
from bench.machine import commit, machine
from bench.progress import show_progress
from bench.record import now, record_folder
from bench.resources import Resources, prepare_resources
from bench.server import Postgres, private_postgres

Values = dict[str, float]


class Options(NamedTuple):
    """What the command line asks for."""

    parts: list[str]
    peers: list[str]
    sizes: Sizes
    server: str
    name: str
    trial: bool


class Run:
    """One run: the server, the installed peers, and what was measured so far."""

    def __init__(self, options: Options, postgres: Postgres, resources: Resources) -> None:
        self.options, self.postgres, self.resources = options, postgres, resources
        self.sizes = options.sizes
        self.jobs = JobsOfDrains(resources.environments["howdah"], options.sizes, postgres)
        self.measured: list[Measured] = []
        self.curves: list[Curve] = []
        self.skipped: dict[str, str] = {}

    def variant(self, rule: Rule) -> Variant:
        return variant_of(HOWDAH, rule, self.resources.environments["howdah"])

    def add(self, peer: str, row: str, turn: int, measure: Callable[[], list[Values]]) -> None:
        """Measure, and keep each of the values as a turn; a failure is kept with its problem."""
        try:
            found = measure()
        except Exception as error:  # the other rows are still measured
            problem = f"{type(error).__name__}: {error}"
            self.measured.append(Measured(peer=peer, row=row, turn=turn, problem=problem))
            show_progress(f"{turn} {row:22} {peer:16} does not count: {problem}")
            return
        for nth, values in enumerate(found):
            self.measured.append(Measured(peer=peer, row=row, turn=turn + nth, values=values))
        shown = ", ".join(f"{name} {value:,g}" for name, value in found[-1].items())
        show_progress(f"{turn} {row:22} {peer:16} {shown}")


def in_turns(run: Run, *, own: bool, peers: bool) -> None:
    """Measure the drains and pickups of howdah, those of the peers, or both within a turn."""
    environments, sizes = run.resources.environments, run.sizes
    for turn in range(1, (sizes.turns if own else sizes.turns_of_peers) + 1):
        steps = steps_of_howdah(environments["howdah"], sizes, run.jobs) if own else []
        if peers:
            steps += steps_of_peers(environments, sizes, turn)
        for step in rotated(steps, turn):
            run.add(step.variant.peer.name, step.row, turn, lambda: _step(run, step))  # noqa: B023 - called at once


def _step(run: Run, step: Step) -> list[Values]:
    return [step.measure(run.postgres)]


def checks(run: Run) -> None:
    for contender in CONTENDERS:
        environment = run.resources.environments.get(contender.peer.name)
        for rule in (*COMPARED, RATED_PEERS):
            offer = contender.offers.get(rule.name)
            if environment is None or offer is None:
                continue
            variant = variant_of(contender, rule, environment)
            jobs = min(offer.checked, run.sizes.checked)
            run.add(
                contender.peer.name,
                f"check_{rule.name}",
                1,
                lambda: [check(variant, jobs, run.postgres)],  # noqa: B023 - called at once
            )


def snapshots(run: Run) -> None:
    sizes = run.sizes

    def measure(rule: Rule) -> list[Values]:
        values, curve = beside_snapshot(
            run.variant(rule),
            min(sizes.snapshot_jobs, run.jobs.of(rule)),
            sizes.snapshot_seconds,
            sizes.snapshot_pairs,
            run.postgres,
        )
        run.curves.append(curve)
        return values

    for rule in LIMITED:
        run.add("howdah", f"snapshot_{rule.name}", 1, lambda: measure(rule))  # noqa: B023 - called at once


def rates(run: Run) -> None:
    for row, held in (("rate", False), ("rate_held", True)):
        run.add(
            "howdah",
            row,
            1,
            lambda: starts_per_second(
                run.variant(RATED),
                run.sizes.rate_seconds,
                run.postgres,
                held=held,  # noqa: B023 - called at once
            ),
        )


def claims(run: Run) -> None:
    sizes = run.sizes
    crowded = Rule("waiting", "one key", "keys")
    run.add(
        "howdah",
        "claim",
        1,
        lambda: beside_waiting(run.variant(crowded), sizes.waiting, sizes.claims, run.postgres),
    )


def fairness(run: Run) -> None:
    if reason := fair.lacking():
        run.skipped["fair"] = reason
        show_progress(f"!!! fair is SKIPPED: {reason}")
        return
    run.add(
        "howdah",
        "fair",
        1,
        lambda: fair.first_jobs_ms(
            run.variant(FAIR), run.sizes.crowd, run.sizes.tenants, run.postgres
        ),
    )


PARTS: dict[str, Callable[[Run], None]] = {
    "drains": lambda run: in_turns(run, own=True, peers="peers" in run.options.parts),
    "peers": lambda run: in_turns(run, own="drains" not in run.options.parts, peers=True),
    "checks": checks,
    "claim": claims,
    "fair": fairness,
    "rate": rates,
    "snapshot": snapshots,
}


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    command = shlex.join(["python", "-m", "bench.admit", *sys.argv[1:]])
    with private_postgres(options.server) as postgres:
        record, folder = measure(options, postgres, command)
    print(report(record))
    print(f"Written to {folder}")
    return int(bool(record.problems()))


def measure(options: Options, postgres: Postgres, command: str) -> tuple[AdmitRecord, Path]:
    """Run the parts that the options name, and write the record after each."""
    peers = [PEERS[name].peer for name in options.peers]
    date = now()
    folder = record_folder(date, options.name, trial=options.trial)
    with prepare_resources(peers, postgres, install) as resources:
        run = Run(options, postgres, resources)
        record = AdmitRecord(
            trial=options.trial,
            command=command,
            date=date,
            commit=commit(),
            machine=machine(),
            postgres=resources.postgres_settings(),
            sizes=options.sizes.as_record(),
            peers=resources.notes,
            measured=run.measured,
            curves=run.curves,
            skipped=run.skipped,
        )
        for name in options.parts:
            if name == "peers" and "drains" in options.parts:
                continue  # their turns are those of the drains
            PARTS[name](run)
            save(record, folder)
    return record, folder


def save(record: AdmitRecord, folder: Path) -> None:
    """Write the record, its report and its chart."""
    write(record, folder)
    (folder / "summary.md").write_text(report(record))
    (folder / "plot.svg").write_text(line_chart(record.curves))


def parse(arguments: list[str] | None) -> Options:
    parser = argparse.ArgumentParser(prog="python -m bench.admit", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", type=chosen(PARTS), default=list(PARTS), metavar="PARTS")
    parser.add_argument("--peers", type=chosen(PEERS), default=list(PEERS), metavar="PEERS")
    parser.add_argument("--server", default="embedded", help="`embedded`, or a folder of programs")
    parser.add_argument("--record", metavar="NAME", help="the record's name after its date")
    parser.add_argument("--quick", action="store_true", help="few jobs, one turn")
    parsed = parser.parse_args(arguments)
    whole = parsed.only == list(PARTS) and parsed.peers == list(PEERS)
    suffix = "" if parsed.server == "embedded" else "-other-postgres"
    return Options(
        parts=parsed.only,
        peers=list(dict.fromkeys(["howdah", *parsed.peers])),
        sizes=QUICK if parsed.quick else FULL,
        server=parsed.server,
        name=parsed.record or f"admit{suffix}",
        trial=parsed.quick or not (whole or parsed.record),
    )


if __name__ == "__main__":
    sys.exit(main())
