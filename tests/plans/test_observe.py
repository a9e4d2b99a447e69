"""What people read of a line reads the dead rows before it once: an open transaction holds them."""

from __future__ import annotations

import pytest

from tests.plans.explain import buffers
from tests.support import Database

pytestmark = [pytest.mark.engine, pytest.mark.plan]

DEAD = 10_000
FIRST_IN_LINE = (
    "select id from jobs_live where job_type = 'mail' and worker_id is null"
    " and ready_at is not null order by job_type, ~priority, ready_at, id limit 1"
)


def test_the_dead_rows_before_a_lane_are_read_once(db: Database) -> None:
    db.execute("alter table jobs_live set (autovacuum_enabled = off)")
    reader = db.session()
    with reader.transaction():
        reader.execute("set transaction isolation level repeatable read")
        reader.value("select count(*) from pg_class")
        db.execute(
            f"insert into jobs_live (job_type) select 'mail' from generate_series(1, {DEAD})"
        )
        db.complete(db.claim("mail", batch=DEAD))
        db.enqueue_many([{"job_type": "mail"}] * 5)
        (lane,) = db.rows("select jobs, more from howdah.lane_counts()")
        assert (lane["jobs"], lane["more"]) == (5, False)
        once = buffers(db, FIRST_IN_LINE)
        assert once > 100  # proof that there are dead rows to read
        assert buffers(db, "select * from howdah.lane_counts()") < 1.5 * once
