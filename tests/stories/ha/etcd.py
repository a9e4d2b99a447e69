"""Etcd: one member on the loopback address. Patroni stores in it which node leads."""

from __future__ import annotations

import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from tests.stories.ha.programs import find_etcd
from tests.support.postgres_server import free_port
from tests.support.waiting import wait_until

DEADLINE = 60.0


@contextmanager
def etcd(folder: Path) -> Generator[int]:
    """Run etcd while the block runs; yields the port for clients."""
    folder.mkdir()
    port, peers = free_port(), f"http://127.0.0.1:{free_port()}"
    clients, log = f"http://127.0.0.1:{port}", folder / "etcd.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [
                *(find_etcd(), "--data-dir", str(folder / "data"), "--name", "only"),
                *("--listen-client-urls", clients, "--advertise-client-urls", clients),
                *("--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers),
                *("--initial-cluster", f"only={peers}", "--logger", "zap"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
        )

    def log_tail() -> str:
        return log.read_text(errors="replace")[-3000:]

    try:

        def ready() -> bool:
            assert process.poll() is None, f"etcd has ended:\n{log_tail()}"
            return _healthy(clients)

        wait_until(ready, lambda: f"etcd is ready:\n{log_tail()}", deadline=DEADLINE)
        yield port
    finally:
        process.kill()
        process.wait()


def _healthy(url: str) -> bool:
    try:
        with urlopen(f"{url}/health", timeout=2) as answer:
            return answer.status == 200
    except (URLError, OSError):
        return False
