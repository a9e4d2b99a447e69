"""Etcd: where Patroni keeps who leads; one member, on the loopback address."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from tests.stories.ha.programs import find_etcd
from tests.stories.server import free_port

DEADLINE = 60.0


@contextmanager
def etcd(folder: Path) -> Generator[int]:
    """Run etcd for as long as it is needed; yields the port that its clients use."""
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
    try:
        until = time.monotonic() + DEADLINE
        while not _healthy(clients):
            said = log.read_text(errors="replace")[-3000:]
            assert process.poll() is None, f"etcd has ended:\n{said}"
            assert time.monotonic() < until, f"etcd is not ready:\n{said}"
            time.sleep(0.05)
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
