"""Arguments: check names, numbers, ids and leases that a caller gives.

Each check returns the value in the form that is used, or raises BadInput. The message names the
parameter, what is allowed and what was given. Lengths of time are checked in durations.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, cast
from uuid import UUID

from howdah.errors import BadInput
from howdah.job import Job, Lease
from howdah.payload import is_text
from howdah.text.reasons import reason_from, shown

T = TypeVar("T")
MOST_ATTEMPTS = 1_000_000_000  # that one requeue can add
MOST_EVENTS = 2**31 - 1  # of one job


def check_whole(what: str, number: object, least: int, most: int) -> int:
    """Return a whole number within its limits."""
    if not isinstance(number, int) or isinstance(number, bool):
        raise BadInput(f"{what} must be a whole number, not {shown(number)}")
    if not least <= number <= most:
        raise BadInput(f"{what} must be between {least} and {most}, not {shown(number)}")
    return number


def check_text(what: str, text: object, longest: int = 200) -> str:
    """Return text that the database can store."""
    if not isinstance(text, str) or not (1 <= len(text) <= longest and is_text(text)):
        raise BadInput(f"{what} must be text of 1 to {longest} characters, not {shown(text)}")
    return text


def check_flag(what: str, flag: object) -> bool:
    """Return True or False."""
    if not isinstance(flag, bool):
        raise BadInput(f"{what} must be True or False, not {shown(flag)}")
    return flag


def check_names(what: str, names: object, members: str = "names of job types") -> list[str]:
    """Return names as a list; a single name is allowed."""
    values = [names] if isinstance(names, str) else as_list(what, names, members)
    return [check_text(f"a name in {what}", name) for name in values]


def check_ids(ids: object) -> list[UUID]:
    """Return ids of jobs as a list; a single id is allowed."""
    single = isinstance(ids, UUID | str) or hasattr(ids, "id")
    return [check_id(id) for id in ([ids] if single else as_list("ids", ids, "ids of jobs"))]


def check_id(id: object) -> UUID:
    """Return the id of a job."""
    if isinstance(id, UUID):
        return id
    try:
        if isinstance(id, str):
            return UUID(id)
    except ValueError:
        pass
    hint = ": give its .id" if hasattr(id, "id") else ""
    raise BadInput(f"a job id must be a UUID, not {shown(id)}{hint}")


def check_leases(jobs: object) -> list[Lease]:
    """Return the leases of claimed jobs; a single job is allowed."""
    single = isinstance(jobs, Job | Lease)
    values = [jobs] if single else as_list("jobs", jobs, "claimed jobs, or their leases")
    return [check_lease(job) for job in values]


def check_lease(job: object) -> Lease:
    """Return the lease of a claimed job."""
    if isinstance(job, Lease):
        return job
    if isinstance(job, Job):
        return job.lease
    raise BadInput(f"give a job that queue.claim(…) returned, or its lease, not {shown(job)}")


def check_reasons(reasons: object, count: int) -> list[str]:
    """Return one text per job; an error may be text, an exception or any object."""
    errors = as_list("errors", reasons, "errors, one per job")
    return [reason_from(error) for error in check_count("errors", errors, count)]


def check_count(what: str, values: list[T], count: int) -> list[T]:
    """Return the values if there is one per job."""
    if len(values) != count:
        raise BadInput(f"{what} must have one value per job: give {count}, not {len(values)}")
    return values


def as_list(what: str, given: object, members: str) -> list[Any]:
    """Return a collection as a list."""
    values: Any = given
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise BadInput(f"{what} must be a list of {members}, not {shown(given)}")
    return list(cast("Iterable[Any]", values))
