"""Observe: questions about a queue, each answered at a bounded cost. Nothing here writes.

    overview.py        the current numbers of every job type
    over_time.py       the last hour, day or week, for charts
    measure_totals.py  the sums of all measures, for counters
    queue_depth.py     how many jobs of each type are in each state
    limits.py          named limits and the rules of types, and their use now
    limit_history.py   the use of a limit in the last hour, day or week
    problems.py        what a person should look at, worst first
    filter.py          which jobs a question is about
    filter_sql.py      a filter as the statements that list and count its jobs
    ids_by_index.py    the live jobs of a filter by key or limit, if there are not too many
    page.py            jobs by filter, page by page, and how many there are
    count.py           a number that may be cut off: 10,000+
    brief.py           a shortened payload and the label, to tell the jobs of a list apart
    short_id.py        a job by a part of its id
    key_counts.py      how many jobs of each key of a type hold a slot, and how many wait
    job_history.py     one job: its waits, its attempts, its events
    steps.py           the steps of one job, and what it sleeps or waits for
    raw.py             the JSON of one job and its events, as it is stored
    failures.py        recent failures, grouped by error
    workers.py         workers, and what each runs now
    job_types.py       what workers have registered about their types
    queues.py          which types have which queue name
    paused.py          which types are paused
    schedules.py       what fires when, and what became of the last firing
    waits_for_slot.py  what a job that is not admitted waits for
    why.py             why a job, or a type, does not run
    doctor/            what is wrong with the database of a queue
    ready.py           whether the database answers and the schema fits
    rest.py            how long to pause between repeated queries

No question reads the whole history. Questions for people have a time limit: see store/query.py.
"""

from __future__ import annotations

from howdah.histogram import Times
from howdah.observe.count import Count
from howdah.observe.doctor import Check, Diagnosis, Level, examine
from howdah.observe.failures import FailureGroup, Failures, failures
from howdah.observe.filter import Filter
from howdah.observe.job_history import JobHistory, Kind, Span, job_history
from howdah.observe.job_types import (
    RegisteredType,
    misfits,
    registered_type,
    unregistered,
    warn_unregistered,
)
from howdah.observe.key_counts import KeyCount, KeyCounts, key_counts
from howdah.observe.limit_history import LimitOverTime, LimitPoint, limit_over_time
from howdah.observe.limits import Limits, NamedLimit, TypeRule, limits
from howdah.observe.measure_totals import MeasureTotals, measure_totals
from howdah.observe.over_time import OverTime, Point, Range, over_time
from howdah.observe.overview import Lane, Minute, Overview, TypeNow, overview
from howdah.observe.page import Page, Summary, count, newest_and_oldest, page
from howdah.observe.paused import Paused, paused
from howdah.observe.problems import Problem, problems
from howdah.observe.queues import check_queues, queue_of_types
from howdah.observe.schedules import (
    Schedule,
    SchedulesNow,
    Upcoming,
    schedule,
    schedules,
    schedules_now,
    upcoming,
)
from howdah.observe.why import Reason, Why, why, why_type
from howdah.observe.workers import Attempt, WorkerHealth, WorkerNow, workers
from howdah.store.query import TookTooLong

__all__ = [
    "Attempt",
    "Check",
    "Count",
    "Diagnosis",
    "FailureGroup",
    "Failures",
    "Filter",
    "JobHistory",
    "KeyCount",
    "KeyCounts",
    "Kind",
    "Lane",
    "Level",
    "LimitOverTime",
    "LimitPoint",
    "Limits",
    "MeasureTotals",
    "Minute",
    "NamedLimit",
    "OverTime",
    "Overview",
    "Page",
    "Paused",
    "Point",
    "Problem",
    "Range",
    "Reason",
    "RegisteredType",
    "Schedule",
    "SchedulesNow",
    "Span",
    "Summary",
    "Times",
    "TookTooLong",
    "TypeNow",
    "TypeRule",
    "Upcoming",
    "Why",
    "WorkerHealth",
    "WorkerNow",
    "check_queues",
    "count",
    "examine",
    "failures",
    "job_history",
    "key_counts",
    "limit_over_time",
    "limits",
    "measure_totals",
    "misfits",
    "newest_and_oldest",
    "over_time",
    "overview",
    "page",
    "paused",
    "problems",
    "queue_of_types",
    "registered_type",
    "schedule",
    "schedules",
    "schedules_now",
    "unregistered",
    "upcoming",
    "warn_unregistered",
    "why",
    "why_type",
    "workers",
]
