"""howdah metrics: text that Prometheus can read, with the right values."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from typing import NamedTuple

import psycopg

from howdah import Rate
from howdah.client.sync import SyncQueue
from howdah.histogram import BOUNDS
from tests.cli.support import Cli, claim, failed

SAMPLE = re.compile(
    r'([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\[\\"n])*",?)*)\})? ([0-9.e+-]+|\+Inf|NaN)'
)
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\\n]|\\[\\"n])*)"')


class Sample(NamedTuple):
    name: str
    labels: frozenset[tuple[str, str]]
    value: float

    def label(self, name: str) -> str:
        return dict(self.labels)[name]


def read(text: str) -> tuple[dict[str, str], list[Sample]]:
    """Read the text format strictly: kinds by name, and every sample."""
    kinds: dict[str, str] = {}
    described: set[str] = set()
    samples: list[Sample] = []
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name = line.split()[2]
            assert name not in described, f"{name} is described twice"
            described.add(name)
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            kinds[name] = kind
        else:
            match = SAMPLE.fullmatch(line)
            assert match, f"not a sample: {line!r}"
            labels = frozenset(LABEL.findall(match[2] or ""))
            family = re.sub(r"_(bucket|sum|count)$", "", match[1])
            assert match[1] in kinds or kinds.get(family) == "histogram", line
            samples.append(Sample(match[1], labels, float(match[3])))
    assert described == set(kinds)
    assert len({(sample.name, sample.labels) for sample in samples}) == len(samples), (
        "a series twice"
    )
    return kinds, samples


def values(samples: list[Sample], name: str, label: str = "job_type") -> dict[str, float]:
    return {sample.label(label): sample.value for sample in samples if sample.name == name}


def test_an_empty_queue_has_metrics_too(cli: Cli) -> None:
    kinds, samples = read(cli.ok("metrics"))
    assert kinds["howdah_attempts_total"] == "counter"
    assert kinds["howdah_run_seconds"] == "histogram"
    assert [sample.value for sample in samples if sample.name == "howdah_workers"] == [0]


def test_depth_age_outcomes_and_workers_are_there(cli: Cli, jobs: SyncQueue) -> None:
    for _ in range(3):
        jobs.enqueue("mail")
    claim(jobs, "mail")[0]
    jobs.enqueue("mail")
    jobs.enqueue("later", delay=3600)
    failed(jobs, "report")
    jobs.pause("later")
    _, samples = read(cli.ok("metrics"))
    assert values(samples, "howdah_jobs_waiting") == {"mail": 1, "later": 0, "report": 0}
    assert values(samples, "howdah_jobs_claimed")["mail"] == 3
    assert values(samples, "howdah_jobs_scheduled")["later"] == 1
    assert values(samples, "howdah_oldest_waiting_seconds")["mail"] > 0
    assert values(samples, "howdah_type_paused") == {"mail": 0, "later": 1, "report": 0}
    kept = {(s.label("job_type"), s.label("status")): s.value for s in samples if "kept" in s.name}
    assert kept == {("report", "failed"): 1}
    assert values(samples, "howdah_health", "check")["workers"] == 3


def test_a_worker_shows_its_slots_beats_outcomes_and_times(cli: Cli, jobs: SyncQueue) -> None:
    @jobs.job
    def work() -> None: ...

    for _ in range(5):
        work.enqueue()
    with jobs.worker(concurrency=7) as worker:
        worker.run_until_idle()
        _, samples = read(cli.ok("metrics"))
        assert values(samples, "howdah_worker_slots", "worker") == {worker.id: 7}
        (age,) = values(samples, "howdah_worker_beat_age_seconds", "worker").values()
        assert 0 <= age < 60
    _, samples = read(cli.ok("metrics"))
    ended = {s.label("outcome"): s.value for s in samples if s.name == "howdah_attempts_total"}
    assert ended == {"completed": 5, "failed": 0, "retried": 0, "cancelled": 0, "released": 0}
    for name in ("howdah_pickup_seconds", "howdah_run_seconds"):
        check_histogram(samples, name, 5)


def check_histogram(samples: list[Sample], name: str, jobs: int) -> None:
    buckets: defaultdict[float, float] = defaultdict(float)
    for sample in samples:
        if sample.name == f"{name}_bucket":
            buckets[math.inf if sample.label("le") == "+Inf" else float(sample.label("le"))] = (
                sample.value
            )
    bounds = sorted(buckets)
    assert bounds[:-1] == list(BOUNDS[::2])
    counts = [buckets[bound] for bound in bounds]
    assert counts == sorted(counts), "a bucket counts all below it too"
    assert counts[-1] == jobs == values(samples, f"{name}_count")["work"]
    assert 0 <= values(samples, f"{name}_sum")["work"] < 60


def test_a_type_may_be_called_anything(cli: Cli, jobs: SyncQueue) -> None:
    strange = 'a "quoted" \\ back {slash}, é'
    jobs.enqueue(strange)
    _, samples = read(cli.ok("metrics"))
    (name,) = values(samples, "howdah_jobs_waiting")
    assert name.replace(r"\"", '"').replace(r"\\", "\\") == strange


def test_the_use_of_each_limit_is_there_and_never_by_key(cli: Cli, jobs: SyncQueue) -> None:
    jobs.set_limit("api", at_once=3, rate=Rate(120, per=60, burst=100))
    jobs.set_limit('ten"ants', at_once=1, per_key=True)
    jobs.set_limit("unused", at_once=7)
    jobs.set_type_limit("mail", limit="api")
    jobs.set_type_limit("resize", at_once=2, limit='ten"ants')
    for _ in range(9):
        jobs.enqueue("mail")
    for n in range(40):
        jobs.enqueue("resize", key=f"tenant-{n % 10}")
    for _ in range(5):
        jobs.enqueue("book", key="one")
    with psycopg.connect(cli.dsn) as connection:
        for _ in range(3):
            connection.execute("select howdah.admit()")
    claim(jobs, "mail")
    _, samples = read(cli.ok("metrics"))
    tenants = r"ten\"ants"
    assert values(samples, "howdah_limit_at_once", "limit") == {"api": 3, tenants: 1, "unused": 7}
    assert values(samples, "howdah_limit_rate", "limit") == {"api": 2}
    assert values(samples, "howdah_limit_admitted", "limit") == {"api": 3, tenants: 10, "unused": 0}
    assert values(samples, "howdah_limit_at_work", "limit") == {"api": 3, tenants: 0, "unused": 0}
    assert values(samples, "howdah_limit_waiting", "limit") == {"api": 6, tenants: 10, "unused": 0}
    assert values(samples, "howdah_jobs_waiting_for_slot") == {"resize": 20, "book": 4}
    assert "tenant-" not in cli.ok("metrics")
