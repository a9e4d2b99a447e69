"""Dashboard: what open pages cost the database while a worker drains at full rate.

    python -m bench.dashboard                            in full: little more than a minute
    python -m bench.dashboard --scale 0.1 --minutes 0.01 --rounds 1    small: does it work?
    python -m bench.dashboard --server FOLDER            the PostgreSQL whose programs are in FOLDER

One line of jobs, one worker, one `howdah web`. Stretches with ten viewers on eight pages and
stretches without take turns, each first in every other round. The dashboard asks under a role of
its own, so the CPU time of its backends can be told from that of all the server's processes.
"""

from __future__ import annotations

import os
import re
import secrets
import statistics
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from bench.cases import Case, Stage, command, exit_code
from bench.findings import Curve, Finding, Point, Seen
from bench.install import ROOT
from bench.lots import NOOP
from bench.measure import Wrong
from bench.processor import Spent, spent
from bench.viewers import viewers
from bench.yard import Worker, Yard, every_second

JOBS = 4_000_000
STRETCH = 5 / 60  # minutes
PAGES = (
    *("/", "/", "/"),
    "/types",
    f"/types/{NOOP}",
    *("/jobs", "/jobs?status=pending"),
    "/failures",
    "/workers",
    "/health",
)
OPEN, CLOSED = "pages open", "no page open"
SHARE, RATE = 2.0, 0.95


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some seconds of draining."""

    rates: list[Point]
    server: Spent
    drawings: int

    @property
    def rate(self) -> float:
        return statistics.mean(rate for _, rate in self.rates)


def of_open_pages(stage: Stage) -> Seen:
    role = f"bench_dashboard_{secrets.token_hex(4)}"
    found: dict[str, list[Stretch]] = {CLOSED: [], OPEN: []}
    with stage.yard() as yard, _role(yard, role), served(as_role(yard.address, role)) as where:
        jobs = stage.jobs(JOBS)
        yard.enqueue(jobs)
        with viewers(where.url, where.token, PAGES) as looking:  # as pages that were open before
            looking.wait_until_drawn(len(PAGES))
        yard.settle_down()
        with yard.worker() as worker:
            yard.watch(worker, 1)
            for number, is_open in stage.turns():
                side = OPEN if is_open else CLOSED
                pages = (PAGES[3 * number :] + PAGES[: 3 * number]) * is_open  # each is first once
                found[side].append(_stretch(yard, worker, role, where, stage, pages))
            if worker.tally.count().calls >= jobs:
                raise Wrong(f"the worker had done all {jobs:,} jobs before the end")
    return Seen(findings(found), [_curve(found)])


def _stretch(
    yard: Yard, worker: Worker, role: str, where: Where, stage: Stage, pages: tuple[str, ...]
) -> Stretch:
    with yard.connect() as connection, viewers(where.url, where.token, pages) as looking:
        if pages:
            looking.wait_until_drawn()
        before, drawn = spent(connection, role), sum(looking.drawings)
        rates = every_second(worker, stage.seconds(STRETCH))
        return Stretch(rates, spent(connection, role).since(before), sum(looking.drawings) - drawn)


def findings(found: dict[str, list[Stretch]]) -> list[Finding]:
    """Say what share of the server's work was for the pages, and how much of the rate is left."""
    rates = {side: statistics.median(one.rate for one in own) for side, own in found.items()}
    opened = found[OPEN]
    server = Spent(sum(one.server.all for one in opened), sum(one.server.role for one in opened))
    drawings = sum(one.drawings for one in opened)
    return [
        Finding(
            case=OPEN_PAGES.name,
            title=f"CPU time of the server for {len(PAGES)} open pages ({drawings} drawings came, "
            f"{server.role:.2f} of {server.all:.1f} s)",
            measured=round(100 * server.share, 2),
            sense="below",
            bound=SHARE,
            unit=" %",
        ),
        Finding(
            case=OPEN_PAGES.name,
            title=f"rate of a worker beside them ({rates[CLOSED]:,.0f} jobs/s without)",
            measured=round(rates[OPEN] / rates[CLOSED], 3),
            sense="at least",
            bound=RATE,
        ),
    ]


def _curve(found: dict[str, list[Stretch]]) -> Curve:
    return Curve(
        case=OPEN_PAGES.name,
        title=f"a worker, with {len(PAGES)} open pages and without",
        across="seconds of a stretch",
        upward="jobs/s",
        lines={
            f"{side}, {number}": one.rates
            for side, own in found.items()
            for number, one in enumerate(own, 1)
        },
    )


@dataclass(frozen=True, slots=True)
class Where:
    """A dashboard at work, and the word that lets a program in."""

    url: str
    token: str


@contextmanager
def served(address: str) -> Generator[Where]:
    """Run `howdah web` on any port."""
    token = secrets.token_urlsafe(24)
    words = [sys.executable, "-P", "-m", "howdah", "web", "--dsn", address, "--port", "0"]
    with subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
        env={**os.environ, "HOWDAH_WEB_TOKEN": token},
    ) as process:
        try:
            assert process.stdout is not None
            said: list[str] = []
            for line in process.stdout:
                said.append(line.strip())
                if link := re.search(r"http://[^/\s]+", line):
                    yield Where(link[0], token)
                    return
            raise Wrong("; ".join(["the dashboard did not start", *said[-3:]]))
        finally:
            process.terminate()


def as_role(address: str, role: str) -> str:
    """Return the DSN for another role, with the same password if there is one."""
    parts = urlsplit(address)
    _, sign, place = parts.netloc.rpartition("@")
    password = f":{parts.password}" if parts.password else ""
    return urlunsplit(parts._replace(netloc=f"{role}{password}@{place if sign else parts.netloc}"))


@contextmanager
def _role(yard: Yard, role: str) -> Generator[None]:
    password = urlsplit(yard.address).password
    secret = f" password '{password}'" if password else ""
    yard.execute(f"create role {role} superuser login{secret}")
    try:
        yield
    finally:
        yard.execute(f"drop role {role}")


OPEN_PAGES = Case("dashboard", "a worker at full rate beside open pages", of_open_pages)
CASES = {OPEN_PAGES.name: OPEN_PAGES}

if __name__ == "__main__":
    sys.exit(exit_code(command("dashboard", CASES, __doc__)))
