"""Desk: what every page and every call of the API stands on.

Comes before  pages/, api/, actions.py

The queue is opened with the first request, because nobody starts an app that is mounted in another.
"""

from __future__ import annotations

import json
import logging
import secrets
from datetime import timedelta
from typing import Any

import msgspec
from starlette.requests import HTTPConnection

from howdah.client.queue import Queue
from howdah.store import Store
from howdah.text.printable import clean_json
from howdah.web.visitor import visitor_of

_log = logging.getLogger("howdah.web")


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What the dashboard may do, and what it hides."""

    read_only: bool = False
    redact: frozenset[str] = frozenset()  # keys of payloads, results and events, in any case
    within: timedelta = timedelta(seconds=2)  # how long the database may take for one look
    title: str = "howdah"


class Desk:
    """A queue, the settings of its dashboard, and the secret that it signs with."""

    def __init__(self, queue: Queue, settings: Settings, secret: str | None = None) -> None:
        self.queue: Queue = queue
        self.settings: Settings = settings
        self.secret: str = secret or secrets.token_urlsafe(32)

    @property
    def store(self) -> Store:
        return self.queue.store

    @property
    def within(self) -> timedelta:
        return self.settings.within

    def note(self, who: str, did: str, on: str, **facts: Any) -> None:
        """Write the audit line of an action; names and values are quoted, so a line stays one."""
        told = "".join(f" {name}={quoted(value)}" for name, value in facts.items())
        _log.info("web.action who=%s did=%s on=%s%s", quoted(who), did, quoted(on), told)


def quoted(value: object) -> str:
    """Write a value as a JSON string without anything that breaks a line or steers a terminal."""
    return clean_json(json.dumps(str(value), ensure_ascii=False))


def desk_of(request: HTTPConnection) -> Desk:
    """Return the desk that a request came to; refuse when nobody was let in."""
    visitor_of(request)
    return request.app.state.desk
