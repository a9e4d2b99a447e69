"""Context: the queue, the settings and the secret of a dashboard, for every page and endpoint.

The queue is opened by the first request, because nobody starts an app that is mounted in another.
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
from howdah.web.redact import MARK
from howdah.web.visitor import visitor_of

_log = logging.getLogger("howdah.web")


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a dashboard."""

    read_only: bool = False
    redact: frozenset[str] = frozenset()  # keys of payloads, results and events, casefolded
    within: timedelta = timedelta(seconds=2)  # time limit of a query
    title: str = "howdah"


class DashboardContext:
    """The queue of a dashboard, its settings, and its signing secret."""

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

    @property
    def key_as(self) -> str | None:
        """What is shown instead of the keys of jobs; None: the keys themselves."""
        return MARK if self.settings.redact else None

    def audit(self, who: str, did: str, on: str, **facts: Any) -> None:
        """Write the audit line of an action. Values are quoted, so it is always one line."""
        more = "".join(f" {name}={quoted(value)}" for name, value in facts.items())
        _log.info("web.action who=%s did=%s on=%s%s", quoted(who), did, quoted(on), more)


def quoted(value: object) -> str:
    """Write a value as a JSON string without line breaks or terminal control characters."""
    return clean_json(json.dumps(str(value), ensure_ascii=False))


def context_of(request: HTTPConnection) -> DashboardContext:
    """Return the context of a request; refuse a request that is not authenticated."""
    visitor_of(request)
    return request.app.state.context
