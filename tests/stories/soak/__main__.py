"""python -m tests.stories.soak: run it, print a line per fault and a table, and keep a record."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from bench.machine import commit, machine
from tests.stories.checker import check
from tests.stories.soak.fault_registry import available_faults
from tests.stories.soak.record import (
    RECORDS,
    SoakRecord,
    admission_counts,
    counts,
    keep,
    of_faults,
)
from tests.stories.soak.servers import run_servers
from tests.stories.story import FaultOutcome, Story, new_seed, story
from tests.stories.story_result import StoryResult

WORKERS, PRODUCERS, PER_SECOND = 3, 2, 8.0


def main() -> int:
    options = _options()
    folder = Path(tempfile.mkdtemp(prefix="howdah-soak-"))
    try:
        record = _soak(folder, options.minutes, options.fault)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(table(record))
    if options.record or not options.fault:  # a run with a single fault is not kept
        print(f"\nkept in {keep(record, options.record or RECORDS / f'{record.date[:10]}-soak')}")
    for finding in record.findings[:50]:
        print(finding, file=sys.stderr)
    return 1 if record.findings else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument(
        "--fault", default="", help="only this fault, by its name in fault_registry.py"
    )
    parser.add_argument("--record", type=Path, default=None, help="a folder for the record")
    return parser.parse_args()


def _soak(folder: Path, minutes: float, only: str) -> SoakRecord:
    seed = new_seed()
    with run_servers(folder) as soak_servers:
        faults = available_faults(soak_servers)
        if only and only not in faults:
            sys.exit(f"there is no fault {only!r} here; there are {', '.join(faults)}")
        chosen = [only] if only else list(faults)
        if soak_servers.refusal is not None:
            print(f"LEFT OUT, the full disks: {soak_servers.refusal}", file=sys.stderr)
        outcomes: list[tuple[str, FaultOutcome]] = []
        with story(
            *(soak_servers.servers, folder / "story", seed),
            workers=WORKERS,
            producers=PRODUCERS,
            per_second=PER_SECOND,
        ) as running:
            until = time.monotonic() + minutes * 60
            while time.monotonic() < until or not outcomes:
                running.rng.shuffle(chosen)
                for key in chosen:
                    for inject in faults[key]:
                        outcomes.append((key, running.inject(inject)))
                        _print_outcome(outcomes[-1][1])
                    running.work(running.rng.randint(20, 200))
                    if time.monotonic() >= until:
                        break
            result = running.drain()
        postgres = running.server.value("show server_version")
        return _record(running, result, outcomes, minutes, only, postgres, soak_servers.refusal)


def _record(
    running: Story,
    result: StoryResult,
    outcomes: list[tuple[str, FaultOutcome]],
    minutes: float,
    only: str,
    postgres: str,
    refusal: str | None,
) -> SoakRecord:
    findings = check(result)
    return SoakRecord(
        command=f"make soak MINUTES={minutes:g}" + (f" FAULT={only}" if only else ""),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        commit=commit(),
        machine=machine(),
        postgres=postgres,
        seed=running.seed,
        minutes=minutes,
        workers=WORKERS,
        findings=findings,
        faults=of_faults(outcomes),
        left_out={} if refusal is None else {"disk full": refusal},
        admission=admission_counts(result),
        **counts(result, findings),
    )


def _print_outcome(outcome: FaultOutcome) -> None:
    print(
        f"{datetime.now(UTC):%H:%M:%S}  {outcome.name:45} under way {outcome.under_way:5}  "
        f"resumed {outcome.resumed:6.2f} s  caught up {outcome.caught_up:6.2f} s",
        flush=True,
    )


def table(record: SoakRecord) -> str:
    """Return the results as lines for a terminal."""
    lines = [f"\n{'fault':45} {'times':>5} {'under way':>9} {'resumed':>8} {'worst':>8}"]
    lines += [
        f"{fault.name:45} {fault.injected:5} {fault.under_way:9} {fault.resumed:7.2f}s"
        f" {fault.resumed_worst:7.2f}s"
        for fault in record.faults
    ]
    lines.append(
        f"\n{sum(fault.injected for fault in record.faults)} faults, {record.jobs} jobs, "
        f"{record.attempts} attempts, {record.given_up} given up, "
        f"lost {record.lost}, settled twice {record.settled_twice}, "
        f"{len(record.findings)} findings; HOWDAH_SEED={record.seed}"
    )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
