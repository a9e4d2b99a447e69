"""Database: checks of the server that can slow down or stop a queue."""

from __future__ import annotations

import time
from datetime import timedelta

from howdah.observe.doctor.check import Check, Examination, Level, graded
from howdah.store import Store, query
from howdah.text.wording import length, percent, size

OLD, VERY_OLD = 300.0, 3600.0  # seconds that a transaction may be open
MUCH_WAL, TOO_MUCH_WAL = 1e9, 10e9  # bytes that a slot may hold back
MANY_USED, NEARLY_ALL_USED = 0.8, 0.95  # of all connections
SKEWED, VERY_SKEWED = 1.0, 30.0  # seconds between two clocks
_DEAD = "Until it ends, vacuum cannot remove dead rows, in this queue and in all other tables. "


async def _transactions(store: Store, within: timedelta) -> list[Check]:
    rows = await query.fetch(
        store,
        within,
        """
        select kind, who, extract(epoch from since)::float8 as seconds from (
            select 'session' as kind,
                   format('pid %s, user %s, %s, %s', pid, usename,
                          coalesce(nullif(application_name, ''), 'unnamed'), state) as who,
                   clock_timestamp() - xact_start as since
            from pg_stat_activity
            where datname = current_database() and pid <> pg_backend_pid()
              and xact_start is not null and backend_type = 'client backend'
              and (backend_xmin is not null or backend_xid is not null
                   or state like 'idle in transaction%')
            union all
            select 'prepared', format('prepared transaction %L of %s', gid, owner),
                   clock_timestamp() - prepared
            from pg_prepared_xacts where database = current_database()
        ) as open order by since desc nulls last limit 1
        """,
    )
    hidden = await query.fetchval(
        store,
        within,
        "select count(*) from pg_stat_activity where datname = current_database() "
        "and backend_type is null",
    )
    if hidden and not rows:
        return [
            Check(
                name="oldest_transaction",
                level=Level.UNKNOWN,
                sentence=f"This role cannot see {hidden} sessions of other users.",
                advice="Grant pg_monitor to the role, or use another role.",
            )
        ]
    if not rows:
        return [
            Check(
                name="oldest_transaction",
                level=Level.FINE,
                sentence="No transaction is open.",
                value=0,
                unit="seconds",
            )
        ]
    kind, who, seconds = rows[0]
    level = graded(seconds, OLD, VERY_OLD)
    end = (
        "end it with rollback prepared or commit prepared"
        if kind == "prepared"
        else "end it in its program, or with select pg_terminate_backend(pid). Set "
        "idle_in_transaction_session_timeout, so that it does not come back"
    )
    return [
        Check(
            name="oldest_transaction",
            level=level,
            sentence=f"The oldest transaction is {length(timedelta(seconds=seconds))} old ({who}).",
            advice="" if level is Level.FINE else f"{_DEAD}Find out what it does, and {end}.",
            value=seconds,
            unit="seconds",
        )
    ]


async def _slots(store: Store, within: timedelta) -> list[Check]:
    rows = await query.fetch(
        store,
        within,
        """
        select slot_name::text as name, active, greatest(age(xmin), age(catalog_xmin)) as age,
               (case when pg_is_in_recovery() then null
                     else pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)
                end)::float8 as held_back
        from pg_replication_slots
        order by held_back desc nulls last, age desc nulls last
        """,
    )
    if not rows:
        return [Check(name="replication_slots", level=Level.FINE, sentence="There are none.")]
    checks: list[Check] = []
    for name, active, age, held_back in rows:
        holds = f"{size(held_back)} of WAL" if held_back is not None else "an unknown amount of WAL"
        level = graded(held_back or 0, MUCH_WAL, TOO_MUCH_WAL)
        if not active and (age or 0) > 100_000:
            level = max(level, Level.WARNING)
        pins = f", and keeps rows that are {age:,} transactions old" if age else ""
        checks.append(
            Check(
                name="replication_slots",
                level=level,
                sentence=f"Replication slot {name} is {'active' if active else 'not active'}, "
                f"holds back {holds}{pins}.",
                advice=""
                if level is Level.FINE
                else "A slot that nobody reads fills the disk and keeps dead rows. Start its "
                "reader, or drop it: select pg_drop_replication_slot(name).",
                value=held_back,
                unit="bytes",
            )
        )
    return checks


async def _standbys(store: Store, within: timedelta) -> list[Check]:
    """Check standbys: with hot_standby_feedback their queries keep dead rows here."""
    age = await query.fetchval(
        store, within, "select max(age(backend_xmin)) from pg_stat_replication"
    )
    if not age:
        return []
    level = graded(age, 1_000_000, 20_000_000)
    return [
        Check(
            name="standby_feedback",
            level=level,
            sentence=f"A standby keeps rows that are {age:,} transactions old.",
            advice=""
            if level is Level.FINE
            else "A long query on the standby keeps dead rows here. End that query, or turn "
            "hot_standby_feedback off.",
            value=age,
            unit="transactions",
        )
    ]


async def _connections(store: Store, within: timedelta) -> list[Check]:
    row = await query.fetchrow(
        store,
        within,
        "select (select count(*) from pg_stat_activity where backend_type = 'client backend' "
        "or backend_type is null) as used, "
        "current_setting('max_connections')::int "
        "- current_setting('superuser_reserved_connections')::int as allowed",
    )
    share = row["used"] / max(1, row["allowed"])
    level = graded(share, MANY_USED, NEARLY_ALL_USED)
    return [
        Check(
            name="connections",
            level=level,
            sentence=f"{row['used']:,} of {row['allowed']:,} connections are used.",
            advice=""
            if level is Level.FINE
            else "When none is left, workers and producers cannot connect. Use PgBouncer, give "
            "queues fewer connections, or raise max_connections.",
            value=share,
            unit="ratio",
        )
    ]


async def _notify(store: Store, within: timedelta) -> list[Check]:
    usage: float = await query.fetchval(store, within, "select pg_notification_queue_usage()")
    level = graded(usage, 0.1, 0.5)
    return [
        Check(
            name="notify_queue",
            level=level,
            sentence=f"The NOTIFY queue is {percent(usage)} full.",
            advice=""
            if level is Level.FINE
            else "A listening session has a transaction open for a long time, so PostgreSQL cannot "
            "empty this queue. When it is full, enqueueing fails. End that transaction.",
            value=usage,
            unit="ratio",
        )
    ]


async def _clock(store: Store, within: timedelta) -> list[Check]:
    sent = time.time()
    server: float = await query.fetchval(
        store, within, "select extract(epoch from clock_timestamp())::float8"
    )
    received = time.time()
    # the round trip is not skew
    skew = max(0.0, server - received, sent - server)
    level = graded(skew, SKEWED, VERY_SKEWED)
    ahead = "ahead of" if server > received else "behind"
    return [
        Check(
            name="clock_skew",
            level=level,
            sentence="The clocks of this machine and the server agree."
            if level is Level.FINE
            else f"The server's clock is {length(timedelta(seconds=skew))} {ahead} this machine's.",
            advice=""
            if level is Level.FINE
            else "A job with run_at then runs early or late by this time. Use NTP on both. "
            "delay=… is counted by the server and is not affected.",
            value=skew,
            unit="seconds",
        )
    ]


EXAMINATIONS: dict[str, Examination] = {
    "oldest_transaction": _transactions,
    "replication_slots": _slots,
    "standby_feedback": _standbys,
    "connections": _connections,
    "notify_queue": _notify,
    "clock_skew": _clock,
}
