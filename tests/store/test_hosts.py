"""A DSN with several hosts: each is tried in its turn, and the one that takes writes is meant."""

from __future__ import annotations

import socket
from datetime import timedelta

import pytest

from howdah import Queue
from howdah.store.dsn import each_host

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


async def test_a_first_host_that_says_nothing_leaves_time_for_the_second(dsn: str) -> None:
    """It takes the connection and never answers: within one limit of time for all, it ate it up."""
    _, _, where = dsn.partition("?host=")
    folder, _, port = where.partition("&port=")
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        silent = deaf.getsockname()[1]
        several = dsn.replace(where, f"127.0.0.1,{folder}&port={silent},{port}&sslmode=disable")
        async with Queue(several, call_timeout=timedelta(seconds=6)) as queue:
            assert await queue.store.fetchval("select 1") == 1
        deaf.settimeout(0)
        deaf.accept()[0].close()  # it was the first that was tried
