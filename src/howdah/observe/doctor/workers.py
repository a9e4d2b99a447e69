"""Workers: which workers are alive or silent, the upkeep they do, and the schema they use."""

from __future__ import annotations

from datetime import timedelta

from howdah.observe.doctor.check import Check, Examination, Level
from howdah.observe.workers import beating_workers, read_held_up
from howdah.store import Store, engine_files, query
from howdah.text.wording import length, some

UNPROMOTED = timedelta(seconds=30)  # that a due job may wait to join the line


async def _workers(store: Store, within: timedelta) -> list[Check]:
    beating = await beating_workers(store, within)
    alive = [worker.id for worker in beating if worker.alive]
    silent = [worker.id for worker in beating if not worker.alive and worker.holds]
    waiting = await query.fetchval(
        store,
        within,
        "select exists (select from howdah.lane_counts(1) as l where (l.jobs > 0 or l.more) "
        "and not exists (select from howdah.paused_types as p where p.job_type = l.job_type))",
    )
    if silent:
        return [
            Check(
                name="workers",
                level=Level.WARNING if alive else Level.CRITICAL,
                sentence=f"{len(silent)} silent workers still hold jobs: {some(silent)}; "
                f"{len(alive)} are alive.",
                advice="Any live worker recovers such jobs within seconds. If none is alive, start "
                "one, or call `howdah recover`.",
                value=len(silent),
                unit="workers",
            )
        ]
    level = Level.CRITICAL if waiting and not alive else Level.FINE
    return [
        Check(
            name="workers",
            level=level,
            sentence=f"{len(alive)} workers are alive."
            if len(alive) != 1
            else "1 worker is alive.",
            advice="Jobs wait and no worker claims them. Start a worker: howdah worker "
            "MODULE:QUEUE. (Foreign workers, which never beat, cannot be seen here.)"
            if level is Level.CRITICAL
            else "",
            value=len(alive),
            unit="workers",
        )
    ]


async def _held_up(store: Store, within: timedelta) -> list[Check]:
    """Find workers whose threads could not run because a handler held the GIL."""
    rows = await query.fetch(
        store,
        within,
        "select w.id, w.info->'held_up' as held_up from howdah.workers as w "
        "where w.beat_at >= howdah.clock() - w.silent_after and w.info ? 'held_up' order by 1",
    )
    reports = [(row["id"], read_held_up(row["held_up"])) for row in rows]
    held = [(worker, report) for worker, report in reports if report is not None]
    if not held:
        return [Check(name="held_up", level=Level.FINE, sentence="No worker was held up.", value=0)]
    worker, worst = max(held, key=lambda report: report[1].seconds)
    types = sorted({name for _, report in held for name in report.types})
    return [
        Check(
            name="held_up",
            level=Level.WARNING,
            sentence=f"{some(types) if types else 'Something'} held the GIL "
            f"for {length(timedelta(seconds=worst.seconds))} in {worker}"
            f"{f', and for less in {len(held) - 1} more workers' if len(held) > 1 else ''}: "
            "nothing else ran there.",
            advice='Register such a handler with run="process". Until then its worker can neither '
            "time it out nor hear that it was cancelled.",
            value=worst.seconds,
            unit="seconds",
        )
    ]


async def _upkeep(store: Store, within: timedelta) -> list[Check]:
    """Check that due jobs join the line; with a worker that takes a second."""
    late: timedelta | None = await query.fetchval(
        store,
        within,
        "select howdah.clock() - (select run_at from howdah.jobs_live "
        "where worker_id is null and ready_at is null "
        "and (admission is null or admission = 'time' or admission = 'backoff') "
        "order by run_at limit 1)",
    )
    overdue = late is not None and late > UNPROMOTED
    return [
        Check(
            name="upkeep",
            level=Level.WARNING if overdue else Level.FINE,
            sentence=f"A job has been due for {length(late)} and has not joined the line."
            if overdue and late is not None
            else "Jobs that are due have joined the line.",
            advice="Workers do the upkeep, one at a time. Either none runs, or a session holds the "
            "lock of the upkeep: look in pg_locks for an advisory lock with objid 2."
            if overdue
            else "",
            value=max(0.0, late.total_seconds()) if late is not None else 0.0,
            unit="seconds",
        )
    ]


async def _schema(store: Store, within: timedelta) -> list[Check]:
    number, fingerprint = await query.fetchrow(
        store, within, "select schema_number, fingerprint from howdah.installed"
    )
    same = fingerprint == engine_files.fingerprint()
    newer = number > engine_files.SCHEMA_NUMBER
    level = Level.FINE if same and not newer else Level.WARNING
    if newer:
        sentence = (
            f"The schema has number {number}, newer than this code's {engine_files.SCHEMA_NUMBER}."
        )
    else:
        sentence = f"The schema has number {number}" + (
            ", as this code has." if same else ", but its functions are not this code's."
        )
    return [
        Check(
            name="schema",
            level=level,
            sentence=sentence,
            advice=""
            if level is Level.FINE
            else "Another version of howdah installed it last. Bring all programs to one version, "
            "then run `howdah install`.",
            value=number,
        )
    ]


EXAMINATIONS: dict[str, Examination] = {
    "workers": _workers,
    "held_up": _held_up,
    "upkeep": _upkeep,
    "schema": _schema,
}
