"""A DSN with several hosts: each is tried in turn, and the one that accepts writes is used."""

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
def test_each_host_gets_its_own_dsn(dsn: str, each: list[str]) -> None:
    assert each_host(dsn) == each


async def test_an_unreachable_host_is_skipped(dsn: str) -> None:
    _, _, address = dsn.partition("?host=")
    folder, _, port = address.partition("&port=")
    both_hosts = dsn.replace(address, f"/nowhere,{folder}&port=5432,{port}")
    async with Queue(both_hosts) as queue:
        assert await queue.store.fetchval("select 1") == 1


async def test_a_silent_first_host_leaves_time_for_the_second(dsn: str) -> None:
    """The first host accepts the connection and never answers; it must not use up the timeout."""
    _, _, address = dsn.partition("?host=")
    folder, _, port = address.partition("&port=")
    with socket.create_server(("127.0.0.1", 0)) as silent_host:
        silent_port = silent_host.getsockname()[1]
        both_hosts = dsn.replace(
            address, f"127.0.0.1,{folder}&port={silent_port},{port}&sslmode=disable"
        )
        async with Queue(both_hosts, call_timeout=timedelta(seconds=6)) as queue:
            assert await queue.store.fetchval("select 1") == 1
        silent_host.settimeout(0)
        silent_host.accept()[0].close()  # the silent host was tried first
