"""Prometheus: the queue as the text that Prometheus scrapes, format 0.0.4.

Comes after  observe/  which reads the numbers

Counters and histograms are the sums of `howdah.measures`. These never fall, so `rate()` is right
for any number of workers and across their restarts. Jobs that foreign workers ended are counted
in howdah_jobs_kept only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

from howdah.histogram import BOUNDS, CELLS
from howdah.observe.doctor import Diagnosis, examine
from howdah.observe.limits import NamedLimit, SlotWait, named_limits, slot_waits
from howdah.observe.measure_totals import MeasureTotals, measure_totals
from howdah.observe.overview import Overview, overview
from howdah.observe.workers import WorkerNow
from howdah.observe.workers import workers as read_workers
from howdah.store import Store
from howdah.store.query import WITHIN, TookTooLong

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
CAP = 100_000  # waiting jobs of one type that are counted for a scrape
OUTCOMES = ("completed", "failed", "retried", "cancelled", "released")

Sample = tuple[Mapping[str, str], float]


async def prometheus(store: Store, *, within: timedelta = WITHIN, cap: int = CAP) -> str:
    """Return the text of all metrics."""
    now = await overview(store, within=within, cap=cap, trend=False)
    late = list(now.late)
    workers: list[WorkerNow] = []
    try:
        workers = await read_workers(store, within=within)
    except TookTooLong:
        late.append("workers")
    totals: list[MeasureTotals] = []
    try:
        totals = await measure_totals(store, within=within)
    except TookTooLong:
        late.append("measures")
    named: list[NamedLimit] = []
    try:
        named = await named_limits(store, within=within, cap=cap)
    except TookTooLong:
        late.append("limits")
    waits: list[SlotWait] = []
    try:
        waits = await slot_waits(store, within=within, cap=cap)
    except TookTooLong:
        late.append("slots")
    diagnosis = await examine(store, within=within)
    page = _Page()
    _types(page, now)
    _limits(page, named, waits)
    _attempts(page, totals)
    _workers(page, workers, now)
    _health(page, diagnosis, late)
    return page.text()


class _Page:
    """The lines of the answer, one metric after the other."""

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
        """Add one histogram per job type; every second bound, so each is twice the one before."""
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


def _types(page: _Page, now: Overview) -> None:
    def gauge(name: str, help: str, value: dict[str, float]) -> None:
        page.add(name, "gauge", help, (({"job_type": t}, n) for t, n in value.items()))

    by_type = {row.job_type: row for row in now.types}
    gauge(
        "howdah_jobs_waiting",
        f"Jobs that stand in line, counted up to {CAP}.",
        {t: row.waiting.jobs for t, row in by_type.items()},
    )
    gauge(
        "howdah_jobs_scheduled",
        "Jobs that are not due yet, for the first time or for a retry.",
        {t: row.scheduled.jobs for t, row in by_type.items()},
    )
    gauge(
        "howdah_jobs_claimed",
        "Jobs that a worker holds and has not started yet.",
        {t: row.claimed for t, row in by_type.items()},
    )
    gauge("howdah_jobs_running", "Jobs that run.", {t: row.running for t, row in by_type.items()})
    gauge(
        "howdah_oldest_waiting_seconds",
        "How long the first job in line has waited.",
        {t: row.oldest.total_seconds() if row.oldest else 0 for t, row in by_type.items()},
    )
    gauge(
        "howdah_type_paused",
        "1 while the type is paused.",
        {t: int(row.paused is not None) for t, row in by_type.items()},
    )
    gauge(
        "howdah_type_workers",
        "Live workers that know the type.",
        {t: row.workers for t, row in by_type.items()},
    )
    page.add(
        "howdah_jobs_kept",
        "gauge",
        "Finished jobs that are not pruned yet, whoever ended them.",
        (
            ({"job_type": t, "status": str(state)}, jobs)
            for t, row in by_type.items()
            for state, jobs in row.finished.items()
        ),
    )


def _limits(page: _Page, named: Sequence[NamedLimit], waits: Sequence[SlotWait]) -> None:
    page.add(
        "howdah_jobs_waiting_for_slot",
        "gauge",
        f"Jobs that wait for a slot of their key, among the first {CAP} with a key.",
        (({"job_type": wait.job_type}, wait.jobs.jobs) for wait in waits),
    )

    def gauge(name: str, help: str, value: dict[str, float | None]) -> None:
        page.add(
            name,
            "gauge",
            help,
            (({"limit": limit}, number) for limit, number in value.items() if number is not None),
        )

    gauge(
        "howdah_limit_at_once",
        "How many jobs may hold a slot of the limit at once, per key if it is per key.",
        {limit.name: limit.at_once for limit in named},
    )
    gauge(
        "howdah_limit_rate",
        "How many jobs may start per second, per key if the limit is per key.",
        {limit.name: limit.per_second for limit in named},
    )
    gauge(
        "howdah_limit_admitted",
        f"Jobs that hold a slot of the limit, counted up to {CAP}.",
        {limit.name: limit.admitted.jobs for limit in named if limit.admitted is not None},
    )
    gauge(
        "howdah_limit_at_work",
        "Of these, jobs that a worker holds.",
        {limit.name: limit.at_work for limit in named},
    )
    gauge(
        "howdah_limit_waiting",
        f"Jobs that wait for the limit, counted up to {CAP}.",
        {limit.name: limit.waiting.jobs for limit in named if limit.waiting is not None},
    )


def _attempts(page: _Page, totals: Sequence[MeasureTotals]) -> None:
    page.add(
        "howdah_attempts_total",
        "counter",
        "Attempts by how they ended.",
        (
            ({"job_type": row.job_type, "outcome": outcome}, getattr(row, outcome))
            for row in totals
            for outcome in OUTCOMES
        ),
    )
    page.histogram(
        "howdah_pickup_seconds",
        "From joining the line to the start of the handler.",
        ((row.job_type, row.pickup, row.pickup_seconds) for row in totals),
    )
    page.histogram(
        "howdah_run_seconds",
        "How long handlers ran.",
        ((row.job_type, row.run, row.run_seconds) for row in totals),
    )


def _workers(page: _Page, workers: Sequence[WorkerNow], now: Overview) -> None:
    page.add("howdah_workers", "gauge", "Live workers.", [({}, now.workers)])
    beating = [worker for worker in workers if worker.beats]
    for name, help, key in (
        ("howdah_worker_slots", "How many jobs the worker may run at once.", "slots"),
        ("howdah_worker_busy", "How many it ran at its last beat.", "running"),
    ):
        page.add(
            name,
            "gauge",
            help,
            (
                ({"worker": worker.id}, value)
                for worker in beating
                if isinstance(value := worker.info.get(key), int)
            ),
        )
    page.add(
        "howdah_worker_beat_age_seconds",
        "gauge",
        "How long ago the worker last beat.",
        (
            ({"worker": worker.id}, max(0.0, worker.silent_for.total_seconds()))
            for worker in beating
            if worker.silent_for is not None
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
