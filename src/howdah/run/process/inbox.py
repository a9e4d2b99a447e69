"""Inbox: a socket with jobs for a child process, which takes one whenever it is free.

So a child never waits for its worker. The worker can take back the jobs that the child has not
taken, at any moment. The kernel gives each packet to one of the two, never to both, so no job is
lost and none runs twice.
"""

from __future__ import annotations

import socket

MAX_PACKET = 16 * 1024  # bytes of a packet; a larger job goes through the pipe
SENT_BY_PIPE = b""  # a packet that stands for a job in the pipe


class Inbox:
    """A pair of datagram sockets; worker and child both read from the second one."""

    def __init__(self) -> None:
        self._write_end, self._read_end = socket.socketpair(type=socket.SOCK_DGRAM)
        self._write_end.setblocking(False)

    @property
    def fileno(self) -> int:
        """The end that the child reads from."""
        return self._read_end.fileno()

    def put(self, packet: bytes) -> bool:
        """Add a packet; False if it does not fit."""
        if len(packet) > MAX_PACKET:
            return False
        try:
            self._write_end.send(packet)
        except OSError:
            return False
        return True

    def take_back(self) -> list[bytes]:
        """Take back everything that the child has not taken."""
        packets: list[bytes] = []
        while True:
            try:
                packets.append(self._read_end.recv(MAX_PACKET, socket.MSG_DONTWAIT))
            except BlockingIOError:
                return packets

    def close(self) -> None:
        self._write_end.close()
        self._read_end.close()


class ChildInbox:
    """The inbox in the child process."""

    def __init__(self, fileno: int) -> None:
        self._read_end = socket.socket(fileno=fileno)

    def get(self) -> bytes:
        """Wait for the next packet, and take it."""
        return self._read_end.recv(MAX_PACKET)

    def get_nowait(self) -> bytes | None:
        """Take the next packet if one is there."""
        try:
            return self._read_end.recv(MAX_PACKET, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None
