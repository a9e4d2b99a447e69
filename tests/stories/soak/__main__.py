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
from tests.stories.facts import Facts
from tests.stories.soak.ground import ground
from tests.stories.soak.record import RECORDS, SoakRecord, counts, keep, of_faults
from tests.stories.soak.roster import roster
from tests.stories.story import Story, Suffered, new_seed, story

WORKERS, PRODUCERS, PER_SECOND = 3, 2, 8.0


def main() -> int:
    asked = _options()
    folder = Path(tempfile.mkdtemp(prefix="howdah-soak-"))
    try:
        record = _soak(folder, asked.minutes, asked.fault)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(table(record))
    if asked.record or not asked.fault:  # one fault alone shows itself, and proves little
        print(f"\nkept in {keep(record, asked.record or RECORDS / f'{record.date[:10]}-soak')}")
    for finding in record.findings[:50]:
        print(finding, file=sys.stderr)
    return 1 if record.findings else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--fault", default="", help="only this one; by its name in roster.py")
    parser.add_argument("--record", type=Path, default=None, help="a folder for the record")
    return parser.parse_args()


def _soak(folder: Path, minutes: float, only: str) -> SoakRecord:
    seed = new_seed()
    with ground(folder) as place:
        faults = roster(place)
        if only and only not in faults:
            sys.exit(f"there is no fault {only!r} here; there are {', '.join(faults)}")
        chosen = [only] if only else list(faults)
        if place.refusal is not None:
            print(f"LEFT OUT, the full disks: {place.refusal}", file=sys.stderr)
        suffered: list[tuple[str, Suffered]] = []
        with story(
            *(place.servers, folder / "story", seed),
            workers=WORKERS,
            producers=PRODUCERS,
            per_second=PER_SECOND,
        ) as told:
            until = time.monotonic() + minutes * 60
            while time.monotonic() < until or not suffered:
                told.chance.shuffle(chosen)
                for key in chosen:
                    for inject in faults[key]:
                        suffered.append((key, told.suffer(inject)))
                        _say(suffered[-1][1])
                    told.work(told.chance.randint(20, 200))
                    if time.monotonic() >= until:
                        break
            facts = told.come_to_rest()
        postgres = told.server.value("show server_version")
        return _record(told, facts, suffered, minutes, only, postgres, place.refusal)


def _record(
    told: Story,
    facts: Facts,
    suffered: list[tuple[str, Suffered]],
    minutes: float,
    only: str,
    postgres: str,
    refusal: str | None,
) -> SoakRecord:
    findings = check(facts)
    return SoakRecord(
        command=f"make soak MINUTES={minutes:g}" + (f" FAULT={only}" if only else ""),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        commit=commit(),
        machine=machine(),
        postgres=postgres,
        seed=told.seed,
        minutes=minutes,
        workers=WORKERS,
        findings=findings,
        faults=of_faults(suffered),
        left_out={} if refusal is None else {"disk full": refusal},
        **counts(facts, findings),
    )


def _say(one: Suffered) -> None:
    print(
        f"{datetime.now(UTC):%H:%M:%S}  {one.name:45} under way {one.under_way:5}  "
        f"resumed {one.resumed:6.2f} s  caught up {one.caught_up:6.2f} s",
        flush=True,
    )


def table(record: SoakRecord) -> str:
    """Write what was found as lines for a terminal."""
    lines = [f"\n{'fault':45} {'times':>5} {'under way':>9} {'resumed':>8} {'worst':>8}"]
    lines += [
        f"{one.name:45} {one.injected:5} {one.under_way:9} {one.resumed:7.2f}s"
        f" {one.resumed_worst:7.2f}s"
        for one in record.faults
    ]
    lines.append(
        f"\n{sum(one.injected for one in record.faults)} faults, {record.jobs} jobs, "
        f"{record.attempts} attempts, {record.given_up} given up, "
        f"lost {record.lost}, settled twice {record.settled_twice}, "
        f"{len(record.findings)} findings; HOWDAH_SEED={record.seed}"
    )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
