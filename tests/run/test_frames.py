"""However the pipe cuts what a child says, its messages come out whole and in order."""

from __future__ import annotations

import pytest

from howdah.run.process import protocol

SAID: list[protocol.FromChild] = [
    protocol.Ready(),
    protocol.Started(),
    protocol.Progress(40.5, "half way"),
    protocol.Emit("note", '{"text": "' + "x" * 3000 + '"}'),
    protocol.Returned("[1, 2]"),
    protocol.Started(),
    protocol.Raised("ValueError: no", None, True),
]


@pytest.mark.parametrize("size", [1, 3, 4, 5, 17, 1000, 10**6])
def test_messages_come_out_whole(size: int) -> None:
    stream = b"".join(map(protocol.frame, SAID))
    hearing = protocol.Hearing()
    heard: list[protocol.FromChild | protocol.Bad] = []
    for at in range(0, len(stream), size):
        heard += hearing.hear(stream[at : at + size])
    assert heard == SAID


def test_what_came_before_nonsense_is_heard() -> None:
    hearing = protocol.Hearing().hear(protocol.frame(SAID[0]) + b"\xff" * 8)
    assert next(hearing) == SAID[0]
    with pytest.raises(protocol.TooLong, match="4,294,967,295 bytes at once"):
        next(hearing)
