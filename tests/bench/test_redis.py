"""Redis is quiet when it saves nothing in the background."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from bench.redis import Redis
from bench.server import NotQuiet


def answer(listener: socket.socket, texts: list[str]) -> None:
    """Answer each command with the next text, and with the last one from then on."""
    connection, _ = listener.accept()
    with connection:
        while connection.recv(4096):
            text = texts.pop(0) if len(texts) > 1 else texts[0]
            connection.sendall(f"${len(text)}\r\n{text}\r\n".encode())


def quiet(path: Path, *texts: str) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        server = threading.Thread(target=answer, args=(listener, list(texts)))
        server.start()
        redis = Redis(path, "7", 0)
        try:
            redis.make_quiet()
        finally:
            redis.close()
            server.join(10)


SAVES = "# Persistence\r\nrdb_bgsave_in_progress:1\r\naof_rewrite_in_progress:0"
REWRITES = "# Persistence\r\nrdb_bgsave_in_progress:0\r\naof_rewrite_in_progress:1"
IDLE = "# Persistence\r\nrdb_bgsave_in_progress:0\r\naof_rewrite_in_progress:0"


def test_redis_is_quiet_when_nothing_is_saved_any_more(tmp_path: Path) -> None:
    quiet(tmp_path / "s", SAVES, REWRITES, IDLE)


@pytest.mark.parametrize("text", [SAVES, REWRITES])
def test_redis_is_not_quiet_while_it_saves(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.redis.QUIET_WITHIN", 0.1)
    with pytest.raises(NotQuiet, match="Redis"):
        quiet(tmp_path / "s", text)
