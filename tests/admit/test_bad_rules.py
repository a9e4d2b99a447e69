"""A rule that makes no sense is refused with a sentence that says what is wrong."""

from __future__ import annotations

import psycopg
import pytest

from tests.support import Database

pytestmark = pytest.mark.engine

BAD = {
    "set_limit('api')": "needs at_once or a rate",
    "set_limit('api', 0)": "at least 1",
    "set_limit('api', null, 0)": "at least 1",
    "set_limit('api', null, 1, null)": "per must be between 1 millisecond and 366 days, not null",
    "set_limit('api', null, 1, '0')": "per must be between",
    "set_limit('api', null, 1, '2 years')": "per must be between",
    "set_limit('api', null, 10000, '1 millisecond')": "more than one per microsecond",
    "set_limit('api', null, 1, '1 second', 0)": "at least 1",
    "set_limit('a:b', 1)": "no colon",
    "set_limit('', 1)": "1 to 100 characters",
    "set_limit(null, 1)": "not null",
    "set_type_limit('mail', 0)": "at_once must be at least 1, not 0",
    "set_type_limit('mail', 3, true)": "at_once must be 1 where ordered is true, not 3",
    "set_type_limit('mail', 1, false, 'openia')": "there is no limit named openia",
    "register_limits('w', '{}')": "must be JSON arrays",
}


@pytest.mark.parametrize("call", BAD)
def test_a_bad_rule_is_refused_and_changes_nothing(db: Database, call: str) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match=BAD[call]):
        db.rows(f"select howdah.{call}")
    assert (
        db.value("select (select count(*) from limits) + (select count(*) from type_limits)") == 0
    )


def test_the_error_for_an_unknown_limit_names_those_that_exist(db: Database) -> None:
    db.execute("select howdah.set_limit('openai', 1)")
    with pytest.raises(psycopg.errors.InvalidParameterValue) as refused:
        db.execute("select howdah.set_type_limit('mail', 1, false, 'openia')")
    assert refused.value.diag.message_hint == "There are: openai."
