"""Node: a PostgreSQL that Patroni starts, stops, promotes and makes a standby again.

A story uses it like any other server, but Patroni decides when it runs.
"""

from __future__ import annotations

import json
import shutil
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any, Self
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import psutil
import psycopg
import pytest

from tests.stories.ha.programs import find_patroni
from tests.support.postgres_server import DETACHED, SETTINGS, USER, PgServer, free_port
from tests.support.waiting import wait_until

# The shortest that Patroni allows. A primary that is gone is noticed when its key has expired.
TIMING = {"ttl": 20, "loop_wait": 1, "retry_timeout": 3}
BY_PATRONI = ("listen_addresses", "hot_standby")
DEADLINE = 120.0


class Node(PgServer):
    """One member of a cluster."""

    def __init__(
        self,
        folder: Path,
        name: str,
        etcd_port: int,
        password: str,
        replicators: str,
        *,
        synchronous: bool,
    ) -> None:
        super().__init__(folder)
        self.name = name
        self.password = password
        self._replicators = replicators
        self._api = free_port()
        self._patroni = find_patroni()
        if not self._run_as.can(("-x", Path(self._patroni).resolve())):
            pytest.fail(f"PATRONI NOT TESTED: the user of PostgreSQL cannot run {self._patroni}")
        self._patroni_pid: int | None = None
        self._config = folder / "patroni.json"
        self._config.write_text(json.dumps(self._settings(etcd_port, synchronous)))
        for path in (folder, self._config):
            self._run_as.give(path)

    def start(self, wait: bool = False) -> Self:
        """Start Patroni, which starts the server."""
        self.log.touch()
        self._run_as.give(self.log)
        done = self._run_as.run(
            "/bin/sh", "-c", DETACHED, "sh", str(self.log), self._patroni, str(self._config)
        )
        self._patroni_pid = int(done.stdout.split()[-1])
        if wait:
            self.wait_until_ready()
        return self

    def kill(self) -> None:
        """End Patroni and every process of the server with SIGKILL."""
        gone = [self._patroni_pid, self._postmaster()]
        processes: list[psutil.Process] = []
        for pid in gone:
            with suppress(psutil.NoSuchProcess):
                if pid is not None:
                    process = psutil.Process(pid)
                    processes += [process, *process.children(recursive=True)]
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
        _, left = psutil.wait_procs(processes, timeout=30)
        assert all(process.status() == psutil.STATUS_ZOMBIE for process in left), left
        self._patroni_pid = None

    def remove(self) -> None:
        self.kill()
        shutil.rmtree(self.data, ignore_errors=True)

    @property
    def alive(self) -> bool:
        return self._patroni_pid is not None and psutil.pid_exists(self._patroni_pid)

    @property
    def leads(self) -> bool:
        """Whether it accepts writes, and Patroni reports it as the primary."""
        try:
            return self.ask("/primary")[0] == 200 and not self.value("select pg_is_in_recovery()")
        except psycopg.OperationalError:
            return False

    @property
    def sync_standby(self) -> bool:
        return self.ask("/synchronous")[0] == 200

    @property
    def replica(self) -> bool:
        return self.ask("/replica")[0] == 200

    def ask(self, path: str, body: dict[str, Any] | None = None) -> tuple[int, str]:
        """Send a request to this node's Patroni; returns the status and the body."""
        request = Request(
            f"http://127.0.0.1:{self._api}{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with urlopen(request, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as error:
            return error.code, error.read().decode()
        except (URLError, OSError) as error:
            return 0, str(error)

    def receiver(self) -> psutil.Process:
        """Return the process that receives the WAL of the primary."""
        return psutil.Process(self.value("select pid from pg_stat_wal_receiver"))

    def until(self, what: str, condition: str) -> None:
        """Wait until one of the properties above holds."""

        def holds() -> bool:
            assert self.alive, f"{self.name}: Patroni has ended:\n{self.log_tail()}"
            return getattr(self, condition)

        wait_until(
            holds, lambda: f"{self.name}: {what}\n{self.log_tail()}", deadline=DEADLINE, pause=0.05
        )

    def _postmaster(self) -> int | None:
        try:
            return int((self.data / "postmaster.pid").read_text().split()[0])
        except (OSError, ValueError, IndexError):
            return None

    def _settings(self, etcd_port: int, synchronous: bool) -> dict[str, Any]:
        address, api = f"127.0.0.1:{self.port}", f"127.0.0.1:{self._api}"
        parameters = {name: SETTINGS[name] for name in SETTINGS if name not in BY_PATRONI}
        return {
            "scope": "story",
            "name": self.name,
            "restapi": {"listen": api, "connect_address": api},
            "etcd3": {"host": f"127.0.0.1:{etcd_port}"},
            "bootstrap": {
                "dcs": {
                    **TIMING,
                    "synchronous_mode": synchronous,
                    "postgresql": {
                        "use_pg_rewind": True,
                        "remove_data_directory_on_rewind_failure": True,
                        "parameters": parameters,
                    },
                },
                "initdb": [{"encoding": "UTF8"}, {"locale": "C"}, "data-checksums"],
            },
            "postgresql": {
                "listen": address,
                "connect_address": address,
                "data_dir": str(self.data),
                "bin_dir": str(Path(self._binaries["postgres"]).parent),
                "pgpass": str(self.folder / "pgpass"),
                "authentication": {
                    "superuser": {"username": USER, "password": self.password},
                    "replication": {"username": "replicator", "password": self._replicators},
                },
                "pg_hba": [
                    "host all all 127.0.0.1/32 scram-sha-256",
                    "host replication replicator 127.0.0.1/32 scram-sha-256",
                ],
                "parameters": {"unix_socket_directories": ""},
            },
        }
