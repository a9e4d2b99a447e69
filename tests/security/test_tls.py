"""TLS follows the DSN: `sslmode` and its certificates reach the driver on every connection.

A real server has a certificate that is made for this test. The pool, the beat, the listener and the
install use it. verify-full accepts the right root and host only.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import psycopg
import pytest

from howdah import JobContext, Queue, Unreachable
from howdah.client.sync import SyncQueue
from tests.cli.support import invoke
from tests.security.certificates import binaries_with_tls, self_signed
from tests.support.postgres_server import PgServer, running_server
from tests.support.waiting import wait_until

HOST = "localhost"


class Secured:
    """A server with TLS, with a right and a wrong root certificate."""

    def __init__(self, server: PgServer, right: Path, wrong: Path) -> None:
        self.server = server
        self.right = right
        self.wrong = wrong

    def dsn(self, *, host: str = HOST, **options: str) -> str:
        query = "&".join(f"{name}={value}" for name, value in options.items())
        authority = f"postgres:{self.server.password}@{host}:{self.server.port}"
        return f"postgresql://{authority}/postgres?{query}"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Generator[Secured]:
    folder = tmp_path_factory.mktemp("tls")
    other = tmp_path_factory.mktemp("other")
    binaries = binaries_with_tls()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOWDAH_PG_BIN", str(binaries))
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
            running = Secured(server, right, wrong)
            _wait(running)
            SyncQueue(running.dsn(sslmode="require")).install()
            yield running
        finally:
            server.stop()


def _wait(secured: Secured) -> None:
    """Wait until the server accepts connections over TLS."""

    def answers() -> bool:
        try:
            psycopg.connect(secured.dsn(sslmode="require")).close()
        except psycopg.OperationalError:
            return False
        return True

    wait_until(answers, "the server speaks TLS")


async def test_every_connection_of_a_worker_is_encrypted(secured: Secured) -> None:
    dsn = secured.dsn(sslmode="verify-full", sslrootcert=str(secured.right))
    async with Queue(dsn) as queue:

        @queue.job
        async def list_sessions(ctx: JobContext) -> list[bool]:
            rows = await queue.store.fetch(
                "select s.ssl from pg_stat_ssl as s join pg_stat_activity as a using (pid) "
                "where a.application_name = 'howdah'"
            )
            return [row[0] for row in rows]

        async with queue.worker():  # its pool, its beat and its listener
            handle = await list_sessions.enqueue()
            encrypted = await handle.result(timeout=20)
    assert len(encrypted) >= 3
    assert all(encrypted), "a connection was not encrypted"


@pytest.mark.parametrize("mode", ["require", "verify-ca", "verify-full"])
async def test_the_right_root_and_host_are_accepted(secured: Secured, mode: str) -> None:
    async with Queue(secured.dsn(sslmode=mode, sslrootcert=str(secured.right))) as queue:
        await queue.enqueue("mail")


@pytest.mark.parametrize("mode", ["verify-ca", "verify-full"])
async def test_another_root_is_refused(secured: Secured, mode: str) -> None:
    queue = Queue(secured.dsn(sslmode=mode, sslrootcert=str(secured.wrong)))
    with pytest.raises(Unreachable, match=r"(?i)certificate") as refused:
        await queue.enqueue("mail")
    assert secured.server.password not in str(refused.value)


async def test_only_verify_full_refuses_another_host(secured: Secured) -> None:
    def queue_with(mode: str) -> Queue:
        return Queue(secured.dsn(host="127.0.0.1", sslmode=mode, sslrootcert=str(secured.right)))

    async with queue_with("verify-ca") as queue:
        await queue.enqueue("mail")
    with pytest.raises(Unreachable, match=r"(?i)certificate"):
        await queue_with("verify-full").enqueue("mail")


async def test_an_unencrypted_connection_is_not_upgraded(secured: Secured) -> None:
    """With `sslmode=disable` a server that requires TLS refuses the connection."""
    with pytest.raises(Unreachable, match="refused the connection"):
        await Queue(secured.dsn(sslmode="disable")).enqueue("mail")


def test_the_command_line_checks_the_same(secured: Secured) -> None:
    right = secured.dsn(sslmode="verify-full", sslrootcert=str(secured.right))
    wrong = secured.dsn(sslmode="verify-full", sslrootcert=str(secured.wrong))
    assert invoke("stats", "--dsn", right).exit_code == 0
    refused = invoke("stats", "--dsn", wrong)
    assert refused.exit_code == 4
    assert "certificate" in refused.stderr.lower()
    assert secured.server.password not in refused.stderr


async def test_a_server_without_tls_is_refused_if_tls_is_required(
    tmp_path: Path,
) -> None:
    with running_server(tmp_path / "plain") as server:
        dsn = server.dsn().replace("sslmode=disable", "sslmode=require")
        with pytest.raises(Unreachable) as refused:
            await Queue(dsn).enqueue("mail")
        assert server.password not in str(refused.value)
