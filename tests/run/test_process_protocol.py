"""Messages of a child arrive whole and in order, however the pipe splits them."""

from __future__ import annotations

import pytest

from howdah.run.process import protocol

MESSAGES: list[protocol.FromChild] = [
    protocol.Ready(),
    protocol.Started(),
    protocol.Progress(40.5, "half way"),
    protocol.Emit("note", '{"text": "' + "x" * 3000 + '"}'),
    protocol.Returned("[1, 2]"),
    protocol.Started(),
    protocol.Raised("ValueError: no", None, True),
]


@pytest.mark.parametrize("size", [1, 3, 4, 5, 17, 1000, 10**6])
def test_messages_arrive_whole(size: int) -> None:
    stream = b"".join(map(protocol.frame, MESSAGES))
    reader = protocol.MessageReader()
    received: list[protocol.FromChild | protocol.BadMessage] = []
    for at in range(0, len(stream), size):
        received += reader.feed(stream[at : at + size])
    assert received == MESSAGES


def test_messages_before_invalid_bytes_are_read() -> None:
    reader = protocol.MessageReader().feed(protocol.frame(MESSAGES[0]) + b"\xff" * 8)
    assert next(reader) == MESSAGES[0]
    with pytest.raises(protocol.TooLong, match="4,294,967,295 bytes at once"):
        next(reader)
