"""Tray: jobs laid out for a child process, which takes one whenever it is free.

So a child never waits for its worker. What it has not taken yet the worker can take back, at any
moment, whatever the child is doing: the kernel hands each packet to one of the two, never to both,
so no job is lost and none runs twice.
"""

from __future__ import annotations

import socket

LARGEST = 16 * 1024  # bytes of a packet; a larger job goes through the pipe
THROUGH_THE_PIPE = b""


class Inbox:
    """A pair of datagram sockets whose far end is held by the worker too."""

    def __init__(self) -> None:
        self._near, self._far = socket.socketpair(type=socket.SOCK_DGRAM)
        self._near.setblocking(False)

    @property
    def fileno(self) -> int:
        """The end that the child takes from."""
        return self._far.fileno()

    def lay(self, packet: bytes) -> bool:
        """Lay a packet down behind the others; False if it does not fit."""
        if len(packet) > LARGEST:
            return False
        try:
            self._near.send(packet)
        except OSError:
            return False
        return True

    def take_back(self) -> list[bytes]:
        """Take back everything that the child has not taken."""
        packets: list[bytes] = []
        while True:
            try:
                packets.append(self._far.recv(LARGEST, socket.MSG_DONTWAIT))
            except BlockingIOError:
                return packets

    def close(self) -> None:
        self._near.close()
        self._far.close()


class TrayOfChild:
    """The same tray as the child sees it."""

    def __init__(self, fileno: int) -> None:
        self._far = socket.socket(fileno=fileno)

    def take(self) -> bytes:
        """Take the next packet, waiting for it."""
        return self._far.recv(LARGEST)

    def take_at_once(self) -> bytes | None:
        """Take the next packet if one is there."""
        try:
            return self._far.recv(LARGEST, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None
