"""A DSN in libpq's keyword form is read as libpq reads it, and its password is never shown."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urlsplit

import psycopg
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from howdah import BadInput, Queue, SyncQueue, Unreachable
from howdah.cli.hide_password import _without_password  # pyright: ignore[reportPrivateUsage]
from howdah.store.dsn import each_host, find_dsn, find_listen_dsn
from howdah.store.dsn_redaction import without_password


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("host=h dbname=d", "postgresql://h/d"),
        ("host=h port=5433 dbname=d user=u password=p", "postgresql://u:p@h:5433/d"),
        ("  host = h  dbname\t=\nd ", "postgresql://h/d"),
        ("dbname='my db' user='o\\'neil'", "postgresql://o%27neil@/my%20db"),
        (r"dbname=my\ db password=a\\b", "postgresql://:a%5Cb@/my%20db"),
        ("host=/run/pg dbname=d", "postgresql:///d?host=/run/pg"),
        ("host=::1 port=5 dbname=d", "postgresql:///d?host=%3A%3A1&port=5"),
        ("host=a,b port=1,2 dbname=d", "postgresql:///d?host=a%2Cb&port=1%2C2"),
        ("hostaddr=10.0.0.1 dbname=d", "postgresql://10.0.0.1/d"),
        ("host=h sslmode=require connect_timeout=3", "postgresql://h/?sslmode=require"),
        ("host=h password='' dbname=d", "postgresql://h/d"),
        ("host=a host=b", "postgresql://b/"),
        ("dbname=d options='-c work_mem=8MB'", "postgresql:///d?options=-c%20work_mem%3D8MB"),
    ],
)
def test_keywords_are_read_as_libpq_reads_them(given: str, used: str) -> None:
    assert find_dsn(given) == used


def test_several_hosts_are_tried_one_by_one() -> None:
    hosts = each_host(find_dsn("host=a,b port=1,2 dbname=d") or "")
    assert [("host=a" in host, "host=b" in host) for host in hosts] == [
        (True, False),
        (False, True),
    ]


@pytest.mark.parametrize(
    ("dsn", "message"),
    [
        ("host=h s3cret", "is not followed by ="),
        ("host=h password='s3cret", "has no closing quote"),
        ("host=h passwort=s3cret", r"unknown keywords \(passwort\)"),
        ("host=h port=s3cret", "port in this DSN is not a number"),
        ("host=h password=a b=s3cret", r"unknown keywords \(…\)"),
        ("password=s3cret 's3cret=x", r"is not followed by =|unknown keywords"),
    ],
)
def test_bad_keywords_are_refused_without_showing_a_value(dsn: str, message: str) -> None:
    with pytest.raises(BadInput, match=message) as refused:
        find_dsn(dsn)
    assert "s3cret" not in str(refused.value)
    assert "host=db dbname=app" in str(refused.value), "the message shows a valid DSN"


def _keywords(dsn: str) -> str:
    with psycopg.connect(dsn) as connection:
        info = connection.info
        return make_conninfo(host=info.host, port=info.port, dbname=info.dbname, user=info.user)


async def test_keywords_are_accepted_wherever_a_dsn_is(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    keywords = _keywords(dsn)
    for name in ("HOWDAH_DSN", "DATABASE_URL", "HOWDAH_LISTEN_DSN"):
        monkeypatch.delenv(name, raising=False)
    async with Queue(keywords, listen_dsn=keywords) as queue:
        await queue.enqueue("mail")
    monkeypatch.setenv("DATABASE_URL", keywords)
    async with Queue() as queue:
        await queue.enqueue("mail")
    monkeypatch.setenv("HOWDAH_DSN", keywords)
    monkeypatch.setenv("HOWDAH_LISTEN_DSN", keywords)
    assert find_listen_dsn(None, None) == find_dsn(keywords)
    with SyncQueue() as queue:
        assert sum(queue.counts()["mail"].values()) == 2


async def test_an_unreachable_server_is_named_without_its_password() -> None:
    queue = Queue("host=127.0.0.1 port=1 dbname=db user=me password='s3 cret'")
    with pytest.raises(Unreachable, match=r"postgresql://me:\*\*\*@127\.0\.0\.1:1/db") as refused:
        await queue.enqueue("mail")
    assert "cret" not in str(refused.value)
    assert "cret" not in repr(queue)


# ── fuzzed ────────────────────────────────────────────────────────────────────────────────

_TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)
_SECRET = st.text(st.sampled_from("sS3'\"\\ :/@?#&=%$[]\tä"), max_size=12).map(
    lambda ends: f"QZ{ends}XJ{ends[::-1]}VK"
)
_PIECES = ("QZ", "XJ", "VK")


@given(st.dictionaries(st.sampled_from(["host", "user", "password", "dbname"]), _TEXT, min_size=1))
def test_a_dsn_that_libpq_wrote_is_read_back(keywords: dict[str, str]) -> None:
    dsn = make_conninfo(**keywords)  # pyright: ignore
    assume(conninfo_to_dict(dsn) == keywords)
    url = urlsplit(find_dsn(dsn) or "")
    if "password" in keywords:
        assert unquote(url.password or "") == keywords["password"]
    if "user" in keywords:
        assert unquote(url.username or "") == keywords["user"]
    if "dbname" in keywords:
        assert unquote(url.path[1:]) == keywords["dbname"]


def _assert_password_hidden(dsn: str) -> None:
    shown: list[str] = [
        without_password(dsn),
        _without_password(dsn),
        _without_password(f"--dsn={dsn}"),
    ]
    try:
        url: Any = find_dsn(dsn)
    except BadInput as refused:
        shown.append(str(refused))
    else:
        shown.append(without_password(url or ""))
    for text in shown:
        assert not any(piece in text for piece in _PIECES), (dsn, text)


@given(_SECRET)
def test_a_quoted_password_is_never_shown(secret: str) -> None:
    dsn = make_conninfo(host="h", user="u", password=secret, dbname="d")
    _assert_password_hidden(dsn)


@example("QZ= XJ =VK", "password=")
@example("QZ://XJ@VK", "password=")
@given(
    _SECRET, st.sampled_from(["password=", "password = ", "sslpassword=", "PASSWORD=", "passwd="])
)
def test_an_unquoted_password_is_never_shown(secret: str, name: str) -> None:
    for dsn in (
        f"host=h {name}{secret} dbname=d",
        f"{name}'{secret} host=h",
        f"user=u {name}{secret}",
    ):
        _assert_password_hidden(dsn)
