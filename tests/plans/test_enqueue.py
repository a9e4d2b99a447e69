"""An enqueue checks the columns that it sets, and converts no other one to its domain."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import Database

pytestmark = [pytest.mark.engine, pytest.mark.plan]

INSERT = """
    insert into howdah.jobs_live (id, job_type, data, priority, max_attempts, trace)
    select gen_random_uuid(), 'mail', '{}', 100, 3, null
"""
SET = {"job_type", "data", "max_attempts", "created_at", "ready_at"}  # the two instants by now()


def test_a_column_that_an_enqueue_does_not_set_is_a_constant_of_its_domain(
    shared_db: Database,
) -> None:
    explained: list[dict[str, Any]] = shared_db.value(f"explain (verbose, format json) {INSERT}")
    columns = shared_db.rows(
        "select a.attname as name, a.atttypid::regtype::text as type, t.typtype = 'd' as checked "
        "from pg_attribute as a join pg_type as t on t.oid = a.atttypid "
        "where a.attrelid = 'howdah.jobs_live'::regclass and a.attnum > 0 order by a.attnum"
    )
    values = explained[0]["Plan"]["Plans"][0]["Output"]
    converted = {
        column["name"]
        for column, value in zip(columns, values, strict=True)
        if column["checked"] and not value.endswith(f"::{column['type']}")
    }
    assert converted == SET
