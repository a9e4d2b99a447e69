"""Rows: make a Job of a row of howdah.jobs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import asyncpg

from howdah import payload
from howdah.job import Job
from howdah.states import State
from howdah.waits_for import WaitsFor

JOB_FIELDS = Job.__struct_fields__
WAITS_FOR = "howdah.waits_for(status, admission, ready_at, attempts, last_error)"


def columns(fields: Iterable[str]) -> str:
    """Write the columns of howdah.jobs for these fields of a job."""
    return ", ".join(f"{WAITS_FOR} as waits_for" if f == "waits_for" else f for f in fields)


JOB_COLUMNS = columns(JOB_FIELDS)


def job_from(row: asyncpg.Record | dict[str, Any]) -> Job:
    """Make a Job of a row selected with JOB_COLUMNS."""
    values: dict[str, Any] = dict(row)
    values["status"] = State(values["status"])
    values["waits_for"] = waits_for(values)
    for name in ("data", "result", "errors"):
        values[name] = payload.decode(values[name])
    return Job(**values)


def waits_for(row: asyncpg.Record | dict[str, Any]) -> WaitsFor | None:
    """Read what a job waits for."""
    return None if row["waits_for"] is None else WaitsFor(row["waits_for"])
