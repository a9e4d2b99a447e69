"""Every path of the dashboard without a credential returns only public files.

The parts are those of real paths, prefixes and public files, and characters that servers, proxies
and routers read differently.
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
from tests.web.raw_requests import DEPLOYMENTS, Answer, ask
from tests.web.secret_job import SECRET_TEXT, make_secret_job

TRICKS = "/ // %2F %2f %5C %2e %2e%2e .. . ; ;x=1 %00 %0d%0a %25 %252F %C3%A9 %FF ? ?page=/jobs a"
PARTS = """
    static STATIC login logout link queue tools api v1 jobs types letters events why metrics live ID
    healthz readyz openapi.json data.json howdah.css /static/ /api/v1/jobs/ID
"""
PIECES = st.sampled_from([*TRICKS.split(), *PARTS.split()])
PATHS = st.lists(PIECES, max_size=10).map(lambda pieces: "/" + "".join(pieces))


class World:
    """A dashboard without a valid credential, a secret job, and their event loop."""

    def __init__(self, dsn: str) -> None:
        self.loop = asyncio.Runner()
        self.queue = Queue(dsn)
        self.apps = {
            name: put(dashboard(self.queue, access=OneTimeLink()))
            for name, (put, _) in DEPLOYMENTS.items()
        }
        self.id: UUID = self.loop.run(make_secret_job(self.queue))
        self.files = self.ask("alone", "/static/howdah.css", "GET").body

    def ask(self, deployment: str, path: str, method: str) -> Answer:
        raw = path.replace("ID", str(self.id)).encode("ascii")
        return self.loop.run(ask(self.apps[deployment], raw, method))


@pytest.fixture(scope="module")
def world(databases: Databases) -> Generator[World]:
    created = World(databases.create())
    yield created
    created.loop.run(created.queue.close())
    created.loop.close()


@given(
    path=PATHS,
    deployment=st.sampled_from(list(DEPLOYMENTS)),
    method=st.sampled_from(["GET", "HEAD", "POST", "OPTIONS"]),
)
@example(path="/static/api/v1/jobs/ID", deployment="prefix cut before", method="GET")
@example(path="/queue%2Fstatic/api/v1/jobs/ID", deployment="mounted", method="GET")
@example(path="/queue%2Fstatic/api/v1/jobs/ID", deployment="prefix kept", method="GET")
@examples(1000)
def test_no_path_shows_private_data_without_a_credential(
    world: World, path: str, deployment: str, method: str
) -> None:
    answer = world.ask(deployment, path, method)
    assert SECRET_TEXT not in answer.text
    if answer.status == 200:
        assert "/static/" in path or "healthz" in path or "readyz" in path
        assert answer.body in (b"", b"ok\n", world.files)
    else:
        assert answer.status in (307, 401, 403, 404, 405)
