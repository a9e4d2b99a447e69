"""What the stories share: a server of their own, that may be crashed and starved."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tests.stories.server import PgServer


@pytest.fixture(scope="session")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Generator[PgServer]:
    made = PgServer(tmp_path_factory.mktemp("server")).make().start()
    yield made
    made.crash()
