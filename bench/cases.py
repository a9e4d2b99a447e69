"""Cases: run the chosen cases one after another, and keep their results.

Comes after   testbed.py, in which a case measures
Comes before  case_record.py, which holds the results

Shared by adverse/, growth/, memory.py, upkeep_delays.py and observe_dashboard.py. The record is
written after every case, so that an interrupted run keeps its results. A full run is kept in
bench/records/, a shortened one in .bench/records/.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.case_record import CaseRecord, CaseResult, report, write
from bench.line_chart import line_chart
from bench.machine import commit, machine
from bench.progress import show_progress
from bench.record import record_folder
from bench.server import Postgres, private_postgres
from bench.testbed import Testbed, new_testbed

ROUNDS = 3


@dataclass(frozen=True, slots=True)
class CaseContext:
    """The server of a case, and how much the case measures."""

    postgres: Postgres
    scale: float = 1.0
    max_minutes: float | None = None
    rounds: int = ROUNDS

    @property
    def shortened(self) -> bool:
        return self.scale < 1 or self.max_minutes is not None or self.rounds < ROUNDS

    def testbed(self) -> AbstractContextManager[Testbed]:
        return new_testbed(self.postgres)

    def jobs(self, full: int) -> int:
        return max(1, int(full * self.scale))

    def seconds(self, minutes: float) -> float:
        return 60 * min(minutes, self.max_minutes or minutes)

    def turns(self) -> Generator[tuple[int, bool]]:
        """Yield (round, whether the disturbance is on). Each side is first in every other round."""
        for number in range(1, self.rounds + 1):
            yield number, number % 2 == 0
            yield number, number % 2 == 1


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    title: str
    run: Callable[[CaseContext], CaseResult]


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asks for."""

    cases: list[Case]
    scale: float
    minutes: float | None
    rounds: int
    server: str
    name: str

    def context(self, postgres: Postgres) -> CaseContext:
        return CaseContext(postgres, self.scale, self.minutes, self.rounds)


def run_command_line(
    suite: str, cases: Mapping[str, Case], about: str | None, arguments: list[str] | None = None
) -> CaseRecord:
    """Run the cases that the command line names, and return their record."""
    options = parse(suite, cases, about, arguments)
    command = shlex.join(["python", "-m", f"bench.{suite}", *sys.argv[1:]])
    with private_postgres(options.server) as postgres:
        context = options.context(postgres)
        record = new_record(suite, context, command)
        folder = record_folder(record.date, options.name, trial=record.shortened)
        for case in options.cases:
            run_case(case, context, record)
            save(record, folder)
    print(report(record))
    print(f"Written to {folder}")
    return record


def new_record(suite: str, context: CaseContext, command: str) -> CaseRecord:
    return CaseRecord(
        suite=suite,
        shortened=context.shortened,
        command=command,
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        commit=commit(),
        machine=machine(),
        postgres={"version": context.postgres.version(), **context.postgres.settings()},
        findings=[],
        curves=[],
    )


def run_case(case: Case, context: CaseContext, record: CaseRecord) -> None:
    """Run a case, and add its result to the record."""
    show_progress(f"{case.name}: {case.title}")
    try:
        result = case.run(context)
    except Exception as error:  # the other cases still run
        record.problems[case.name] = f"{type(error).__name__}: {error}"
        show_progress(f"    does not count: {record.problems[case.name]}")
        return
    record.findings.extend(result.findings)
    record.curves.extend(result.curves)
    for finding in result.findings:
        measured = f"{finding.measured:.2f}{finding.unit}, wanted {finding.wanted}"
        show_progress(f"    {finding.title}: {measured}: {record.verdict(finding)}")


def save(record: CaseRecord, folder: Path) -> None:
    """Write the record, its report and its chart."""
    write(record, folder)
    (folder / "summary.md").write_text(report(record))
    (folder / "plot.svg").write_text(line_chart(record.curves))


def exit_code(record: CaseRecord) -> int:
    missed = [finding for finding in record.findings if record.verdict(finding) == "missed"]
    return int(bool(missed or record.problems))


def parse(
    suite: str, cases: Mapping[str, Case], about: str | None, arguments: list[str] | None
) -> Options:
    parser = argparse.ArgumentParser(prog=f"python -m bench.{suite}", description=about)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", metavar="CASES", help=f"some of {', '.join(cases)}")
    parser.add_argument("--server", default="embedded", help="`embedded`, or a folder of programs")
    parser.add_argument("--scale", type=float, default=1.0, help="part of the jobs, for a trial")
    parser.add_argument("--minutes", type=float, help="longest part of a case, for a trial")
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, help="how often each side is measured"
    )
    parser.add_argument("--record", metavar="NAME", help="the record's name after its date")
    parsed = parser.parse_args(arguments)
    names = parsed.only.split(",") if parsed.only else list(cases)
    if unknown := [name for name in names if name not in cases]:
        parser.error(f"{unknown[0]!r} is unknown: choose from {', '.join(cases)}")
    server = "" if parsed.server == "embedded" else "-other-postgres"
    some = "-".join(["", *names]) if parsed.only else ""
    return Options(
        cases=[cases[name] for name in names],
        scale=parsed.scale,
        minutes=parsed.minutes,
        rounds=parsed.rounds,
        server=parsed.server,
        name=parsed.record or f"{suite}{some.replace('_', '-')}{server}",
    )
