"""A DSN with several hosts: each is tried in its turn, and the one that takes writes is meant."""

from __future__ import annotations

import pytest

from howdah import Queue
from howdah.store.address import each_host

WRITES = "target_session_attrs=read-write"


@pytest.mark.parametrize(
    ("dsn", "each"),
    [
        ("postgresql://u:p@a:1/db", ["postgresql://u:p@a:1/db"]),
        (
            "postgresql://u:p@a:1,b:2/db",
            [f"postgresql://u:p@a:1/db?{WRITES}", f"postgresql://u:p@b:2/db?{WRITES}"],
        ),
        (
            "postgresql://u@[::1]:1,[::2]/db?sslmode=require",
            [
                f"postgresql://u@[::1]:1/db?sslmode=require&{WRITES}",
                f"postgresql://u@[::2]/db?sslmode=require&{WRITES}",
            ],
        ),
        (
            "postgresql://u@/db?host=/one way,/two&port=1,2",
            [
                f"postgresql://u@/db?host=/one%20way&port=1&{WRITES}",
                f"postgresql://u@/db?host=/two&port=2&{WRITES}",
            ],
        ),
        (
            "postgresql://a,b/db?port=7&target_session_attrs=any",
            [
                "postgresql://a/db?port=7&target_session_attrs=any",
                "postgresql://b/db?port=7&target_session_attrs=any",
            ],
        ),
        ("postgresql://u@/db?host=/home/of one", ["postgresql://u@/db?host=/home/of one"]),
    ],
)
def test_every_host_gets_a_dsn_of_its_own(dsn: str, each: list[str]) -> None:
    assert each_host(dsn) == each


async def test_a_host_that_is_not_there_is_passed_over(dsn: str) -> None:
    _, _, where = dsn.partition("?host=")
    folder, _, port = where.partition("&port=")
    several = dsn.replace(where, f"/nowhere,{folder}&port=5432,{port}")
    async with Queue(several) as queue:
        assert await queue.store.fetchval("select 1") == 1
