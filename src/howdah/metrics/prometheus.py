"""Prometheus: the queue as the text that Prometheus scrapes, format 0.0.4.

Comes after  observe/  which answers the questions

Counters and histograms are the sums of `howdah.measures`, which never fall, so `rate()` works over
any number of workers and over their restarts. They tell what howdah's own workers did; what
foreign workers ended shows in howdah_jobs_kept alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

import asyncpg

from howdah.histogram import BOUNDS, CELLS
from howdah.observe.count import Count
from howdah.observe.doctor import Diagnosis, examine
from howdah.observe.overview import Overview, TypeNow, overview
from howdah.observe.workers import WorkerNow, crew
from howdah.store import Store, query

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
CAP = 100_000  # waiting jobs of one type that are counted for a scrape
OUTCOMES = ("completed", "failed", "retried", "cancelled", "released")

Sample = tuple[Mapping[str, str], float]


async def prometheus(store: Store, *, within: timedelta = query.WITHIN, cap: int = CAP) -> str:
    """Return everything there is to scrape."""
    seen = await overview(store, within=within, cap=cap, trend=False)
    late = list(seen.late)
    workers: list[WorkerNow] = []
    try:
        workers = await crew(store, within=within)
    except query.TookTooLong:
        late.append("workers")
    measured: Sequence[asyncpg.Record] = []
    try:
        measured = await query.fetch(store, within, "select * from howdah.measured()")
    except query.TookTooLong:
        late.append("measures")
    diagnosis = await examine(store, within=within)
    page = _Page()
    _types(page, seen)
    _measured(page, measured)
    _workers(page, workers, seen)
    _health(page, diagnosis, late)
    return page.text()


class _Page:
    """Lines of text, one metric after the other."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"

    def _head(self, name: str, kind: str, help: str) -> None:
        self._lines += [f"# HELP {name} {help}", f"# TYPE {name} {kind}"]

    def add(self, name: str, kind: str, help: str, samples: Iterable[Sample]) -> None:
        self._head(name, kind, help)
        for labels, value in samples:
            self._lines.append(f"{name}{_labels(labels)} {_number(value)}")

    def histogram(
        self, name: str, help: str, of: Iterable[tuple[str, Sequence[int], float]]
    ) -> None:
        """Add one histogram per job type: every other bound, so each is twice the one before."""
        self._head(name, "histogram", help)
        for job_type, cells, seconds in of:
            full = [*cells, *[0] * (CELLS - len(cells))]
            type_label = {"job_type": job_type}
            for n in range(0, len(BOUNDS), 2):
                labels = _labels({**type_label, "le": _number(BOUNDS[n])})
                self._lines.append(f"{name}_bucket{labels} {sum(full[: n + 1])}")
            labels = _labels({**type_label, "le": "+Inf"})
            self._lines.append(f"{name}_bucket{labels} {sum(full)}")
            self._lines.append(f"{name}_sum{_labels(type_label)} {_number(seconds)}")
            self._lines.append(f"{name}_count{_labels(type_label)} {sum(full)}")


def _labels(labels: Mapping[str, str]) -> str:
    inside = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{inside}}}" if inside else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))


def _types(page: _Page, seen: Overview) -> None:
    def gauge(name: str, help: str, value: dict[str, float]) -> None:
        page.add(name, "gauge", help, (({"job_type": t}, n) for t, n in value.items()))

    def counted(count: Count) -> float:
        return count.jobs

    types: list[TypeNow] = seen.types
    by_type = {one.job_type: one for one in types}
    gauge(
        "howdah_jobs_waiting",
        f"Jobs that stand in line, counted up to {CAP}.",
        {t: counted(one.waiting) for t, one in by_type.items()},
    )
    gauge(
        "howdah_jobs_scheduled",
        "Jobs that wait for their time or for a retry.",
        {t: counted(one.scheduled) for t, one in by_type.items()},
    )
    gauge(
        "howdah_jobs_claimed",
        "Jobs in a worker's hands that are not known to run yet.",
        {t: one.claimed for t, one in by_type.items()},
    )
    gauge("howdah_jobs_running", "Jobs at work.", {t: one.running for t, one in by_type.items()})
    gauge(
        "howdah_oldest_waiting_seconds",
        "How long the first job in line has stood there.",
        {t: one.oldest.total_seconds() if one.oldest else 0 for t, one in by_type.items()},
    )
    gauge(
        "howdah_type_paused",
        "1 while the type is paused.",
        {t: int(one.paused is not None) for t, one in by_type.items()},
    )
    gauge(
        "howdah_type_listeners",
        "Live workers that know the type.",
        {t: one.listeners for t, one in by_type.items()},
    )
    page.add(
        "howdah_jobs_kept",
        "gauge",
        "Finished jobs that are kept, whoever ended them.",
        (
            ({"job_type": t, "status": str(state)}, jobs)
            for t, one in by_type.items()
            for state, jobs in one.finished.items()
        ),
    )


def _measured(page: _Page, rows: Sequence[asyncpg.Record]) -> None:
    page.add(
        "howdah_attempts_total",
        "counter",
        "Attempts by how they ended.",
        (({"job_type": row["job_type"], "outcome": o}, row[o]) for row in rows for o in OUTCOMES),
    )
    page.histogram(
        "howdah_pickup_seconds",
        "From joining the line to the start of the handler.",
        ((row["job_type"], row["pickup"], row["pickup_seconds"]) for row in rows),
    )
    page.histogram(
        "howdah_run_seconds",
        "How long handlers ran.",
        ((row["job_type"], row["run"], row["run_seconds"]) for row in rows),
    )


def _workers(page: _Page, workers: Sequence[WorkerNow], seen: Overview) -> None:
    page.add("howdah_workers", "gauge", "Live workers.", [({}, seen.workers)])
    beating = [one for one in workers if one.beats]
    for name, help, key in (
        ("howdah_worker_slots", "How many jobs the worker may run at once.", "slots"),
        ("howdah_worker_busy", "How many it ran at its last beat.", "running"),
    ):
        page.add(
            name,
            "gauge",
            help,
            (
                ({"worker": one.id}, value)
                for one in beating
                if isinstance(value := one.info.get(key), int)
            ),
        )
    page.add(
        "howdah_worker_beat_age_seconds",
        "gauge",
        "How long ago the worker last said that it lives.",
        (
            ({"worker": one.id}, max(0.0, one.silent_for.total_seconds()))
            for one in beating
            if one.silent_for is not None
        ),
    )


def _health(page: _Page, diagnosis: Diagnosis, late: Sequence[str]) -> None:
    worst: dict[str, int] = {}
    for check in diagnosis.checks:
        worst[check.name] = max(worst.get(check.name, 0), int(check.level))
    page.add(
        "howdah_health",
        "gauge",
        "What `howdah doctor` finds: 0 fine, 1 unknown, 2 warning, 3 critical.",
        (({"check": name}, level) for name, level in sorted(worst.items())),
    )
    page.add(
        "howdah_late",
        "gauge",
        "1 for each part of this page that took too long and is missing.",
        (({"part": part}, 1) for part in late),
    )
