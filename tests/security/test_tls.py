"""TLS is what the DSN says: `sslmode` and its certificates reach the driver on every connection.

A real server with a certificate made for this test. The pool, the beat, the listener and the
install all use it; verify-full lets in the right root and host, and nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import psycopg
import pytest

from howdah import JobContext, Queue, Unreachable
from howdah.client.sync import SyncQueue
from tests.cli.support import invoke, until_true
from tests.security.server import binaries_with_tls, running, self_signed
from tests.stories.server import PgServer

HOST = "localhost"


class Secured:
    """A server that speaks TLS, and the files one needs to trust it."""

    def __init__(self, server: PgServer, right: Path, wrong: Path) -> None:
        self.server = server
        self.right = right
        self.wrong = wrong

    def dsn(self, *, host: str = HOST, **asked: str) -> str:
        query = "&".join(f"{name}={value}" for name, value in asked.items())
        where = f"postgres:{self.server.password}@{host}:{self.server.port}"
        return f"postgresql://{where}/postgres?{query}"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Generator[Secured]:
    folder = tmp_path_factory.mktemp("tls")
    other = tmp_path_factory.mktemp("other")
    found = binaries_with_tls()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOWDAH_PG_BIN", str(found))
        server = PgServer(folder).make()
        owner = server.data.stat().st_uid
        key, certificate = self_signed(server.data, HOST, owner)
        server.settings |= {
            "ssl": "on",
            "ssl_key_file": str(key),
            "ssl_cert_file": str(certificate),
        }
        _, wrong = self_signed(other, HOST, os.geteuid())
        right = other / "root.crt"
        right.write_bytes(certificate.read_bytes())
        only_tls = "hostnossl all all all reject\nhostssl all all all scram-sha-256\n"
        (server.data / "pg_hba.conf").write_text(only_tls)
        try:
            server.start(wait=False)
            made = Secured(server, right, wrong)
            _wait(made)
            SyncQueue(made.dsn(sslmode="require")).install()
            yield made
        finally:
            server.stop()


def _wait(secured: Secured) -> None:
    """Wait until the server takes connections, which here takes TLS."""

    def answers() -> bool:
        try:
            psycopg.connect(secured.dsn(sslmode="require")).close()
        except psycopg.OperationalError:
            return False
        return True

    until_true(answers, "the server speaks TLS")


async def test_every_connection_of_a_worker_is_encrypted(secured: Secured) -> None:
    dsn = secured.dsn(sslmode="verify-full", sslrootcert=str(secured.right))
    async with Queue(dsn) as queue:

        @queue.job
        async def look(ctx: JobContext) -> list[bool]:
            rows = await queue.store.fetch(
                "select s.ssl from pg_stat_ssl as s join pg_stat_activity as a using (pid) "
                "where a.application_name = 'howdah'"
            )
            return [row[0] for row in rows]

        async with queue.worker():  # its pool, its beat and its listener
            handle = await look.enqueue()
            seen = await handle.result(timeout=20)
    assert len(seen) >= 3
    assert all(seen), "a connection went over the wire in clear"


@pytest.mark.parametrize("mode", ["require", "verify-ca", "verify-full"])
async def test_the_right_root_and_host_are_let_in(secured: Secured, mode: str) -> None:
    async with Queue(secured.dsn(sslmode=mode, sslrootcert=str(secured.right))) as queue:
        await queue.enqueue("mail")


@pytest.mark.parametrize("mode", ["verify-ca", "verify-full"])
async def test_another_root_is_refused(secured: Secured, mode: str) -> None:
    queue = Queue(secured.dsn(sslmode=mode, sslrootcert=str(secured.wrong)))
    with pytest.raises(Unreachable, match=r"(?i)certificate") as refused:
        await queue.enqueue("mail")
    assert secured.server.password not in str(refused.value)


async def test_another_host_is_refused_by_verify_full_alone(secured: Secured) -> None:
    def asked(mode: str) -> Queue:
        return Queue(secured.dsn(host="127.0.0.1", sslmode=mode, sslrootcert=str(secured.right)))

    async with asked("verify-ca") as queue:
        await queue.enqueue("mail")
    with pytest.raises(Unreachable, match=r"(?i)certificate"):
        await asked("verify-full").enqueue("mail")


async def test_a_connection_in_clear_is_not_made_up_for(secured: Secured) -> None:
    """Who says `disable` is refused by a server that wants TLS, not helped to it."""
    with pytest.raises(Unreachable, match="does not let us in"):
        await Queue(secured.dsn(sslmode="disable")).enqueue("mail")


def test_the_command_line_asks_for_the_same(secured: Secured) -> None:
    right = secured.dsn(sslmode="verify-full", sslrootcert=str(secured.right))
    wrong = secured.dsn(sslmode="verify-full", sslrootcert=str(secured.wrong))
    assert invoke("stats", "--dsn", right).exit_code == 0
    refused = invoke("stats", "--dsn", wrong)
    assert refused.exit_code == 4
    assert "certificate" in refused.stderr.lower()
    assert secured.server.password not in refused.stderr


async def test_a_server_without_tls_is_refused_where_it_is_asked_for(
    tmp_path: Path,
) -> None:
    with running(tmp_path / "plain") as server:
        dsn = server.dsn().replace("sslmode=disable", "sslmode=require")
        with pytest.raises(Unreachable) as refused:
            await Queue(dsn).enqueue("mail")
        assert server.password not in str(refused.value)
