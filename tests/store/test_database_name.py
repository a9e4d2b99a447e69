"""Messages name the database, but neither its user nor its password."""

from __future__ import annotations

import pytest

from howdah.store.database_name import database_name


@pytest.mark.parametrize(
    ("dsn", "name"),
    [
        (None, "embedded PostgreSQL"),
        ("postgresql://kim:s3cret@db.internal/shop", "shop on db.internal"),
        ("postgresql://kim:s3cret@db.internal:5432/shop", "shop on db.internal"),
        ("postgresql://kim:s3cret@db.internal:6432/shop", "shop on db.internal:6432"),
        ("postgresql://kim@[::1]:6432/shop", "shop on [::1]:6432"),
        ("postgresql://a:1,b:2/shop", "shop on a:1,b:2"),
        ("postgresql:///shop", "shop on this machine"),
        ("postgresql://kim@/shop?host=/run/pg&port=5433", "shop on this machine"),
        ("postgresql://kim@/shop?host=db&password=s3cret", "shop on db"),
        ("postgresql://db", "the default database on db"),
        ("host=db port=6432 dbname=shop user=kim password=s3cret", "shop on db:6432"),
    ],
)
def test_a_database_is_named_by_its_name_and_host(dsn: str | None, name: str) -> None:
    assert database_name(dsn) == name


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://kim:s3cret@s3cret@db/shop",
        "postgresql://kim:s3cret/s3cret@db/shop",
        "postgresql://kim:s3cret#s3cret@db/shop",
        "postgresql://kim:s3cret?s3cret@db/shop",
        "postgresql://kim:s3cret[@db/shop",
        "postgresql://db:s3cret/shop",
        "postgresql://ki/m@db/shop?passfile=s3cret",
        "user=kim password='s3cret s3cret' host=db",
        "kim:s3cret@db",
    ],
)
def test_no_password_and_no_user_is_named(dsn: str) -> None:
    assert "s3cret" not in database_name(dsn)
    assert "kim" not in database_name(dsn)
