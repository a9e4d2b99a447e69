"""Cases: run the cases that were chosen one after another, and keep what they find.

Comes after   yard.py, in which a case measures
Comes before  findings.py, which is what is kept

Shared by bad_days, memory and growth. The record is written after every case, so that a run that
is cut short leaves what it has found. A full run is kept in bench/records/; a shortened one goes
below .bench/.
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

from bench.findings import Account, Seen, report, write
from bench.install import GROUND
from bench.lines import picture
from bench.machine import commit, machine
from bench.record import RECORDS
from bench.server import Postgres, private_postgres
from bench.yard import Yard, yard

ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Stage:
    """What a case measures with, and how much of it."""

    postgres: Postgres
    scale: float = 1.0
    most_minutes: float | None = None
    rounds: int = ROUNDS

    @property
    def shortened(self) -> bool:
        return self.scale < 1 or self.most_minutes is not None or self.rounds < ROUNDS

    def yard(self) -> AbstractContextManager[Yard]:
        return yard(self.postgres)

    def jobs(self, full: int) -> int:
        return max(1, int(full * self.scale))

    def seconds(self, minutes: float) -> float:
        return 60 * min(minutes, self.most_minutes or minutes)

    def turns(self) -> Generator[tuple[int, bool]]:
        """Yield (round, whether it is the bad day's turn), each first in every other round."""
        for number in range(1, self.rounds + 1):
            yield number, number % 2 == 0
            yield number, number % 2 == 1


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    title: str
    run: Callable[[Stage], Seen]


@dataclass(frozen=True, slots=True)
class Choice:
    """What the command line asks for."""

    cases: list[Case]
    scale: float
    minutes: float | None
    rounds: int
    server: str
    name: str

    def stage(self, postgres: Postgres) -> Stage:
        return Stage(postgres, self.scale, self.minutes, self.rounds)


def command(
    what: str, cases: Mapping[str, Case], about: str | None, arguments: list[str] | None = None
) -> Account:
    """Do what the command line asks for; returns what is kept."""
    choice = parse(what, cases, about, arguments)
    words = shlex.join(["python", "-m", f"bench.{what.replace('-', '_')}", *sys.argv[1:]])
    with private_postgres(choice.server) as postgres:
        stage = choice.stage(postgres)
        account = start(what, stage, words)
        folder = GROUND / "records" if account.shortened else RECORDS
        folder /= f"{account.date[:10]}-{choice.name}"
        for case in choice.cases:
            add(account, case, stage)
            publish(account, folder)
    print(report(account))
    print(f"Written to {folder}")
    return account


def start(what: str, stage: Stage, words: str) -> Account:
    return Account(
        what=what,
        shortened=stage.shortened,
        command=words,
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        commit=commit(),
        machine=machine(),
        postgres={"version": stage.postgres.version(), **stage.postgres.settings()},
        findings=[],
        curves=[],
    )


def add(account: Account, case: Case, stage: Stage) -> None:
    """Run a case, and add what it found to the account."""
    tell(f"{case.name}: {case.title}")
    try:
        seen = case.run(stage)
    except Exception as error:  # whatever goes wrong in one, the others take their turn
        account.problems[case.name] = f"{type(error).__name__}: {error}"
        tell(f"    does not count: {account.problems[case.name]}")
        return
    account.findings.extend(seen.findings)
    account.curves.extend(seen.curves)
    for one in seen.findings:
        said = f"{one.measured:.2f}{one.unit}, wanted {one.wanted}"
        tell(f"    {one.title}: {said}: {account.verdict(one)}")


def publish(account: Account, folder: Path) -> None:
    """Write down the figures, the text and the picture."""
    write(account, folder)
    (folder / "summary.md").write_text(report(account))
    (folder / "plot.svg").write_text(picture(account.curves))


def exit_code(account: Account) -> int:
    missed = [one for one in account.findings if account.verdict(one) == "missed"]
    return int(bool(missed or account.problems))


def tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def parse(
    what: str, cases: Mapping[str, Case], about: str | None, arguments: list[str] | None
) -> Choice:
    parser = argparse.ArgumentParser(prog=f"python -m bench.{what.replace('-', '_')}")
    parser.description = about
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", metavar="CASES", help=f"some of {', '.join(cases)}")
    parser.add_argument("--server", default="embedded", help="`embedded`, or a folder of programs")
    parser.add_argument("--scale", type=float, default=1.0, help="part of the jobs, to try it")
    parser.add_argument("--minutes", type=float, help="hold nothing longer than this, to try it")
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, help="how often each side is measured"
    )
    parser.add_argument("--record", metavar="NAME", help="the record's name after its date")
    said = parser.parse_args(arguments)
    names = said.only.split(",") if said.only else list(cases)
    if unknown := [name for name in names if name not in cases]:
        parser.error(f"{unknown[0]!r} is none of {', '.join(cases)}")
    elsewhere = "" if said.server == "embedded" else "-other-postgres"
    some = "-".join(["", *names]) if said.only else ""
    return Choice(
        cases=[cases[name] for name in names],
        scale=said.scale,
        minutes=said.minutes,
        rounds=said.rounds,
        server=said.server,
        name=said.record or f"{what}{some.replace('_', '-')}{elsewhere}",
    )
