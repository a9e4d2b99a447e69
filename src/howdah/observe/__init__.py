"""Observe: questions about a queue, each answered at a bounded cost, and how to steer it.

    overview.py   every type at a glance, from counts with a cap and from measures
    over_time.py  the last hour, day or week of all types or of one, for charts
    problems.py   what a person should look at, worst first
    page.py       jobs by filter, page by page, and how many there are
    brief.py      what tells the jobs of a list apart: payloads, cut, and labels
    short_id.py   a job by a part of its id
    life.py       one job: its waits, its attempts, its events
    failures.py   recent failures, the same errors together
    crew.py       workers, and what each runs now
    job_types.py  what workers have registered of their types
    why.py        why a job, or a type, does not move
    doctor/       what is wrong with a PostgreSQL queue
    ready.py      whether the database answers and the schema fits
    steer.py      pause and resume, priority, time, delete
    measures.py   what a worker measures; histogram.py, how times are counted

No question reads the history as a whole, and each takes a time limit: `look.py`.
"""

from __future__ import annotations

from howdah.histogram import Times
from howdah.observe.count import Count
from howdah.observe.doctor import Check, Diagnosis, Level, examine
from howdah.observe.failures import FailureGroup, Failures, failures
from howdah.observe.history import Kind, Life, Span, life
from howdah.observe.job_types import (
    RegisteredType,
    misfits,
    registered_type,
    unregistered,
    warn_unregistered,
)
from howdah.observe.over_time import OverTime, Point, Range, over_time
from howdah.observe.overview import Lane, Minute, Overview, TypeNow, overview
from howdah.observe.page import Filter, Page, Summary, count, ends, page
from howdah.observe.problems import Problem, problems
from howdah.observe.why import Reason, Why, why, why_type
from howdah.observe.workers import Attempt, WorkerNow, crew
from howdah.store.query import TookTooLong
from howdah.store.steer import (
    Paused,
    clone,
    delete,
    drain,
    pause,
    paused,
    reprioritise,
    resume,
    run_now,
)

__all__ = [
    "Attempt",
    "Check",
    "Count",
    "Diagnosis",
    "FailureGroup",
    "Failures",
    "Filter",
    "Kind",
    "Lane",
    "Level",
    "Life",
    "Minute",
    "OverTime",
    "Overview",
    "Page",
    "Paused",
    "Point",
    "Problem",
    "Range",
    "Reason",
    "RegisteredType",
    "Span",
    "Summary",
    "Times",
    "TookTooLong",
    "TypeNow",
    "Why",
    "WorkerNow",
    "clone",
    "count",
    "crew",
    "delete",
    "drain",
    "ends",
    "examine",
    "failures",
    "life",
    "misfits",
    "over_time",
    "overview",
    "page",
    "pause",
    "paused",
    "problems",
    "registered_type",
    "reprioritise",
    "resume",
    "run_now",
    "unregistered",
    "warn_unregistered",
    "why",
    "why_type",
]
