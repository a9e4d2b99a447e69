"""Paths of every kind to the dashboard, without a credential: nothing but public files comes back.

The pieces are those of real paths, of prefixes and of public files, and whatever servers, proxies
and routers read in different ways.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from howdah import Queue
from howdah.web import OneTimeLink, dashboard
from tests.fuzz.budget import examples
from tests.support.databases import Databases
from tests.web.planted import PLANTED, planted
from tests.web.raw import PLACES, Answer, ask

TRICKS = "/ // %2F %2f %5C %2e %2e%2e .. . ; ;x=1 %00 %0d%0a %25 %252F %C3%A9 %FF ? ?page=/jobs a"
PARTS = """
    static STATIC login enter queue tools api v1 jobs types letters events why metrics live ID
    healthz readyz openapi.json data.json howdah.css /static/ /api/v1/jobs/ID
"""
PIECES = st.sampled_from([*TRICKS.split(), *PARTS.split()])
PATHS = st.lists(PIECES, max_size=10).map(lambda pieces: "/" + "".join(pieces))


class World:
    """A dashboard that lets nobody in, with a job to read, and the loop it lives in."""

    def __init__(self, dsn: str) -> None:
        self.loop = asyncio.Runner()
        self.queue = Queue(dsn)
        self.apps = {
            name: put(dashboard(self.queue, access=OneTimeLink()))
            for name, (put, _) in PLACES.items()
        }
        self.id: UUID = self.loop.run(planted(self.queue))
        self.files = self.ask("alone", "/static/howdah.css", "GET").body

    def ask(self, place: str, path: str, method: str) -> Answer:
        raw = path.replace("ID", str(self.id)).encode("ascii")
        return self.loop.run(ask(self.apps[place], raw, method))


@pytest.fixture(scope="module")
def world(databases: Databases) -> Generator[World]:
    made = World(databases.create())
    yield made
    made.loop.run(made.queue.close())
    made.loop.close()


@given(
    path=PATHS,
    place=st.sampled_from(list(PLACES)),
    method=st.sampled_from(["GET", "HEAD", "POST", "OPTIONS"]),
)
@example(path="/static/api/v1/jobs/ID", place="prefix cut before", method="GET")
@example(path="/queue%2Fstatic/api/v1/jobs/ID", place="mounted", method="GET")
@example(path="/queue%2Fstatic/api/v1/jobs/ID", place="prefix kept", method="GET")
@examples(1000)
def test_no_path_shows_nobody_anything(world: World, path: str, place: str, method: str) -> None:
    answer = world.ask(place, path, method)
    assert PLANTED not in answer.text
    if answer.status == 200:
        assert "/static/" in path or "healthz" in path or "readyz" in path
        assert answer.body in (b"", b"ok\n", world.files)
    else:
        assert answer.status in (307, 401, 403, 404, 405)
