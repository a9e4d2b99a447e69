"""howdah: a PostgreSQL job queue for Python.

from howdah import Queue

queue = Queue()

@queue.job
async def greet(name: str) -> str:
    return f"hello {name}"

handle = await greet.enqueue(name="world")
async with queue.worker():
    print(await handle.result())
"""

from __future__ import annotations

from howdah.admit import Rate
from howdah.client.handle import Handle
from howdah.client.job_type import JobType
from howdah.client.queue import Queue
from howdah.client.sync import SyncHandle, SyncJobType, SyncQueue
from howdah.errors import (
    BadInput,
    DuplicateJobType,
    EmbeddedUnavailable,
    HowdahError,
    JobCancelled,
    JobEnded,
    JobExists,
    JobFailed,
    JobNotFound,
    NotAllowed,
    PayloadTooLarge,
    ReadOnly,
    ResultDoesNotFit,
    SchemaError,
    SchemaMissing,
    SchemaNewer,
    SchemaOlder,
    SignalTimeout,
    StaleLease,
    StepMismatch,
    Unreachable,
)
from howdah.events import Emitted, Ended, Event, Progressed
from howdah.handler import Backoff
from howdah.job import Draft, Job, Lease, Priority
from howdah.outcomes import Cancel, Fail, Retry, Snooze, Suspended
from howdah.run.context import JobContext, current_job
from howdah.run.hooks import AttemptEnd, AttemptStart
from howdah.run.job_logging import JobLogFilter
from howdah.states import State
from howdah.version import VERSION as __version__
from howdah.waits_for import WaitsFor
from howdah.worker import Worker

__all__ = [
    "AttemptEnd",
    "AttemptStart",
    "Backoff",
    "BadInput",
    "Cancel",
    "Draft",
    "DuplicateJobType",
    "EmbeddedUnavailable",
    "Emitted",
    "Ended",
    "Event",
    "Fail",
    "Handle",
    "HowdahError",
    "Job",
    "JobCancelled",
    "JobContext",
    "JobEnded",
    "JobExists",
    "JobFailed",
    "JobLogFilter",
    "JobNotFound",
    "JobType",
    "Lease",
    "NotAllowed",
    "PayloadTooLarge",
    "Priority",
    "Progressed",
    "Queue",
    "Rate",
    "ReadOnly",
    "ResultDoesNotFit",
    "Retry",
    "SchemaError",
    "SchemaMissing",
    "SchemaNewer",
    "SchemaOlder",
    "SignalTimeout",
    "Snooze",
    "StaleLease",
    "State",
    "StepMismatch",
    "Suspended",
    "SyncHandle",
    "SyncJobType",
    "SyncQueue",
    "Unreachable",
    "WaitsFor",
    "Worker",
    "__version__",
    "current_job",
]
