"""Bulk: an action on all jobs that match a filter, as a job with progress.

    request.py  the payload of a bulk job: action, filter, user; signed by the dashboard
    job.py      the handler: changes the jobs page by page, newest first
    runner.py   a small worker inside the dashboard that runs bulk jobs while there are any
    start.py    counts the jobs, then enqueues the bulk job

A bulk job is a normal job: it can be watched and cancelled, and continues after a crash. Every
dashboard of the same database with the same secret can run it, unless it is read-only.
"""

from __future__ import annotations

from howdah.web.bulk.request import BULK, MOVES, BulkRequest, narrowed
from howdah.web.bulk.runner import BulkRunner, ResumeBulkJobs, runner_of
from howdah.web.bulk.start import count, start

__all__ = [
    "BULK",
    "MOVES",
    "BulkRequest",
    "BulkRunner",
    "ResumeBulkJobs",
    "count",
    "narrowed",
    "runner_of",
    "start",
]
