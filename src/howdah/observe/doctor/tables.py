"""Tables: dead rows, whether vacuum keeps up, and the partitions by day."""

from __future__ import annotations

from datetime import timedelta

from howdah.observe.doctor.check import Check, Examination, Level, graded
from howdah.store import Store, query
from howdah.text.wording import length

BUSY_TABLES = (
    "jobs_live",
    "workers",
    "finished_counts",
    "measures",
    "measure_history",
    "limit_history",
)
MANY, VERY_MANY = 200_000, 5_000_000  # dead rows
LATE = timedelta(minutes=10)  # that a due vacuum may be late


async def _dead_rows(store: Store, within: timedelta) -> list[Check]:
    rows = await query.fetch(
        store,
        within,
        "select relname::text as name, n_dead_tup as dead, n_live_tup as live "
        "from pg_stat_user_tables where schemaname = 'howdah' and relname = any ($1) "
        "order by n_dead_tup desc",
        list(BUSY_TABLES),
    )
    worst = rows[0]
    level = graded(worst["dead"], MANY, VERY_MANY) if worst["dead"] > worst["live"] else Level.FINE
    return [
        Check(
            name="dead_rows",
            level=level,
            sentence=f"howdah.{worst['name']} has {worst['dead']:,} dead rows beside "
            f"{worst['live']:,} live ones.",
            advice=""
            if level is Level.FINE
            else "Claims and counts read dead rows until vacuum removes them. If an old "
            "transaction or a slot keeps them, end that first; else vacuum does not keep up.",
            value=worst["dead"],
            unit="rows",
        )
    ]


async def _vacuum(store: Store, within: timedelta) -> list[Check]:
    enabled = await query.fetchval(store, within, "select current_setting('autovacuum')::bool")
    row = await query.fetchrow(
        store,
        within,
        "select n_dead_tup as dead, 2000 + 0.02 * greatest(n_live_tup, 0) as due, "
        "clock_timestamp() - greatest(last_vacuum, last_autovacuum) as ago "
        "from pg_stat_user_tables where schemaname = 'howdah' and relname = 'jobs_live'",
    )
    age, limit = await query.fetchrow(
        store,
        within,
        "select max(age(relfrozenxid)), current_setting('autovacuum_freeze_max_age')::int "
        "from pg_class where relnamespace = 'howdah'::regnamespace and relkind = 'r'",
    )
    overdue = row["dead"] > 10 * row["due"] and (row["ago"] is None or row["ago"] > LATE)
    last = "has never been vacuumed"
    if row["ago"] is not None:
        last = f"was last vacuumed {length(row['ago'])} ago"
    level = Level.FINE
    advice = ""
    if not enabled:
        level, advice = (
            Level.CRITICAL,
            "Set autovacuum = on: without it the queue gets slower and slower.",
        )
    elif overdue:
        level = Level.WARNING
        advice = (
            "A vacuum is due and does not start. All autovacuum workers may be busy (raise "
            "autovacuum_max_workers), or a lock blocks it. Run `vacuum howdah.jobs_live` now."
        )
    checks = [
        Check(
            name="autovacuum",
            level=level,
            sentence=f"Autovacuum is {'on' if enabled else 'off'}; howdah.jobs_live {last}.",
            advice=advice,
            value=row["ago"].total_seconds() if row["ago"] is not None else None,
            unit="seconds",
        )
    ]
    wrap = graded(age / limit, 1.5, 5.0)
    if wrap is not Level.FINE:
        checks.append(
            Check(
                name="freeze_age",
                level=wrap,
                sentence=f"The oldest row in the schema is {age:,} transactions old.",
                advice="PostgreSQL stops all writes at two billion. Find what keeps vacuum from "
                "freezing rows: a long transaction, a slot, or too few autovacuum workers.",
                value=age,
                unit="transactions",
            )
        )
    return checks


async def _days(store: Store, within: timedelta) -> list[Check]:
    row = await query.fetchrow(
        store,
        within,
        """
        with parts as (
            select p.parent, p.keep, c.relname,
                   case when c.relname ~ '_[0-9]{8}$'
                        then to_date(right(c.relname, 8), 'YYYYMMDD') end as day
            from (values ('jobs_finished', 'keep_finished'), ('job_events', 'keep_events'))
                     as p (parent, keep)
            join pg_inherits as i on i.inhparent = ('howdah.' || p.parent)::regclass
            join pg_class as c on c.oid = i.inhrelid
        )
        select array(select p.parent || ' of ' || d.day
                     from (values ('jobs_finished'), ('job_events')) as p (parent)
                     cross join lateral (values (howdah.today()), (howdah.today() + 1)) as d (day)
                     where not exists (
                         select from parts where parts.parent = p.parent and parts.day = d.day)
                     order by 1) as missing,
               array(select relname::text from parts
                     where day < (howdah.clock() - howdah.option(keep)::interval
                                  - interval '1 day') at time zone 'utc' - interval '1 day'
                     order by 1) as overdue,
               exists (select from howdah.jobs_finished_unprepared)
               or exists (select from howdah.job_events_unprepared) as unprepared
        """,
    )
    missing, overdue, unprepared = row
    if missing or unprepared:
        sentence = f"There is no partition for {', '.join(missing)}." if missing else ""
        rows = " Rows wait in an _unprepared partition for their day." if unprepared else ""
        return [
            Check(
                name="days",
                level=Level.WARNING,
                sentence=(sentence + rows).strip(),
                advice="Nothing is lost: such rows are moved to their day. Workers prepare days "
                "every ten minutes; if no worker runs, call select howdah.prepare_days(). If this "
                "stays, a session holds a lock on jobs: end it.",
                value=len(missing),
                unit="partitions",
            )
        ]
    if overdue:
        return [
            Check(
                name="days",
                level=Level.WARNING,
                sentence=f"{len(overdue)} partitions are older than their retention: "
                f"{', '.join(overdue[:3])}.",
                advice="Workers prune every ten minutes; if no worker runs, call select "
                "howdah.prune(). If this stays, a session holds a lock on jobs: end it.",
                value=len(overdue),
                unit="partitions",
            )
        ]
    return [
        Check(
            name="days",
            level=Level.FINE,
            sentence="The partitions of today and tomorrow exist, and old ones are dropped.",
            value=0,
            unit="partitions",
        )
    ]


EXAMINATIONS: dict[str, Examination] = {
    "dead_rows": _dead_rows,
    "autovacuum": _vacuum,
    "days": _days,
}
