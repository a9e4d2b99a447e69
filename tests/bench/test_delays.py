"""How late delayed jobs are claimed can be measured."""

from __future__ import annotations

from bench.cases import CaseContext
from bench.server import Postgres
from bench.upkeep_delays import CASES
from tests.support.databases import Databases


def test_the_lateness_of_delayed_jobs_is_measured(databases: Databases) -> None:
    context = CaseContext(Postgres(databases.server_dsn), scale=0.01, rounds=1)
    result = CASES["delays"].run(context)
    assert [finding.title[-3:] for finding in result.findings] == ["p50", "p99"]
    assert all(finding.measured >= 0 for finding in result.findings)
    assert len(result.curves[0].series["late"]) == 5
