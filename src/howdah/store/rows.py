"""Rows: make a Job of a row of howdah.jobs."""

from __future__ import annotations

from typing import Any

import asyncpg

from howdah import payload
from howdah.job import Job
from howdah.states import State

JOB_FIELDS = Job.__struct_fields__
JOB_COLUMNS = ", ".join(JOB_FIELDS)


def job_from(row: asyncpg.Record | dict[str, Any]) -> Job:
    """Make a Job of a row selected with JOB_COLUMNS."""
    values: dict[str, Any] = dict(row)
    values["status"] = State(values["status"])
    for name in ("data", "result", "errors"):
        values[name] = payload.decode(values[name])
    return Job(**values)
