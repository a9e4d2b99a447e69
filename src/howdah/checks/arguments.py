"""Arguments: values that people give, checked where they arrive.

Each check returns the value as it is used, or raises BadInput: which parameter, what came, what is
wanted. Lengths of time have a module of their own: checks/durations.py.
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
MOST_ATTEMPTS = 1_000_000_000  # that a job can be given at once
MOST_EVENTS = 2**31 - 1  # of one job


def check_whole(what: str, number: object, least: int, most: int) -> int:
    """Return a whole number within its limits."""
    if not isinstance(number, int) or isinstance(number, bool):
        raise BadInput(f"{what} is a whole number, not {shown(number)}")
    if not least <= number <= most:
        raise BadInput(f"{what} lies between {least} and {most}, not {shown(number)}")
    return number


def check_text(what: str, text: object, longest: int = 200) -> str:
    """Return text that the database can keep."""
    if not isinstance(text, str) or not (1 <= len(text) <= longest and is_text(text)):
        raise BadInput(f"{what} is text of 1 to {longest} characters, not {shown(text)}")
    return text


def check_flag(what: str, flag: object) -> bool:
    """Return True or False."""
    if not isinstance(flag, bool):
        raise BadInput(f"{what} is True or False, not {shown(flag)}")
    return flag


def check_names(what: str, names: object) -> list[str]:
    """Return names as a list; one name may come alone."""
    given = [names] if isinstance(names, str) else several(what, names, "names of job types")
    return [check_text(f"a name in {what}", name) for name in given]


def check_ids(ids: object) -> list[UUID]:
    """Return ids of jobs as a list; one id may come alone."""
    alone = isinstance(ids, UUID | str) or hasattr(ids, "id")
    return [check_id(id) for id in ([ids] if alone else several("ids", ids, "ids of jobs"))]


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
    raise BadInput(f"a job id is a uuid, not {shown(id)}{hint}")


def check_leases(jobs: object) -> list[Lease]:
    """Return the leases of claimed jobs; one job may come alone."""
    alone = isinstance(jobs, Job | Lease)
    given = [jobs] if alone else several("jobs", jobs, "claimed jobs, or their leases")
    return [check_lease(job) for job in given]


def check_lease(job: object) -> Lease:
    """Return the lease of a claimed job."""
    if isinstance(job, Lease):
        return job
    if isinstance(job, Job):
        return job.lease
    raise BadInput(f"a job that queue.claim(…) returned is wanted, or its lease, not {shown(job)}")


def check_reasons(reasons: object, count: int) -> list[str]:
    """Return one text per job of whatever was given as errors."""
    given = several("errors", reasons, "errors, one per job")
    return [reason_from(one) for one in check_count("errors", given, count)]


def check_count(what: str, values: list[T], count: int) -> list[T]:
    """Return as many values as there are jobs."""
    if len(values) != count:
        raise BadInput(f"{what} has one value per job: {count} are wanted, not {len(values)}")
    return values


def several(what: str, given: object, wanted: str) -> list[Any]:
    """Return a collection as a list."""
    values: Any = given
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise BadInput(f"{what} is a list of {wanted}, not {shown(given)}")
    return list(cast("Iterable[Any]", values))
