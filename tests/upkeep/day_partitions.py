"""Day partitions: helpers of the tests about them."""

from __future__ import annotations

from datetime import date, timedelta
from uuid import UUID

from tests.support import Session

DAY = timedelta(days=1)


def today(db: Session) -> date:
    return db.value("select today()")


def name(parent: str, day: date) -> str:
    return f"{parent}_{day:%Y%m%d}"


def finish_one(db: Session, job_type: str = "mail") -> UUID:
    """Enqueue, claim and complete one job, with one event."""
    job = db.enqueue(job_type)
    claims = db.claim(job_type)
    db.emit(claims, "done")
    db.complete(claims)
    return job


def parts_of(db: Session, parent: str) -> set[str]:
    return set(
        db.column(
            "select inhrelid::regclass::text from pg_inherits where inhparent = %s::regclass",
            parent,
        )
    )
