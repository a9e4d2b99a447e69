"""How late delayed jobs are claimed can be measured."""

from __future__ import annotations

from bench.cases import Stage
from bench.delays import CASES
from bench.server import Postgres
from tests.support.databases import Databases


def test_the_lateness_of_delayed_jobs_is_measured(databases: Databases) -> None:
    stage = Stage(Postgres(databases.server_dsn), scale=0.01, rounds=1)
    seen = CASES["delays"].run(stage)
    assert [finding.title[-3:] for finding in seen.findings] == ["p50", "p99"]
    assert all(finding.measured >= 0 for finding in seen.findings)
    assert len(seen.curves[0].lines["late"]) == 5
