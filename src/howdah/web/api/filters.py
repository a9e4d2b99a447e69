"""Filters: a job filter as the fields of a query or a body; the same as `observe.Filter`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from howdah.errors import BadInput
from howdah.observe import Filter
from howdah.states import State
from howdah.waits_for import WaitsFor
from howdah.web.redact import asks_for_hidden, refuse_hidden_keys

MAX_INT4 = 2**31 - 1

Text = Annotated[str, Meta(pattern="^[^\\u0000]*$")]
Priority = Annotated[int, Meta(ge=-(2**31), le=MAX_INT4, description="Higher goes first.")]
Attempts = Annotated[int, Meta(ge=0, le=MAX_INT4)]
Instant = Annotated[datetime, Meta(tz=True)]
KeyValue = Annotated[
    str,
    Meta(
        pattern="^[^=\\u0000]+=[^\\u0000]*$",
        description="`key=value`: the payload has this key with this value, as JSON or as text.",
    ),
]


class JobFilter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A filter of jobs; a field that is left out matches all."""

    status: list[State] = []
    job_type: list[Text] = []
    queue: Annotated[list[Text], Meta(description="The queue of its type.")] = []
    priority: Priority | UnsetType = UNSET
    worker_id: Annotated[Text, Meta(description="Its last worker.")] | UnsetType = UNSET
    key: Annotated[Text, Meta(description="Its concurrency key.")] | UnsetType = UNSET
    limited_by: (
        Annotated[Text, Meta(description="The name of its limit; for one key of it: name:key.")]
        | UnsetType
    ) = UNSET
    waits_for: Annotated[
        list[WaitsFor],
        Meta(description="What it waits for, while it is pending: key is a slot of its key."),
    ] = []
    attempts_from: Attempts | UnsetType = UNSET
    attempts_to: Attempts | UnsetType = UNSET
    created_from: Instant | UnsetType = UNSET
    created_to: Annotated[Instant, Meta(description="Before this time.")] | UnsetType = UNSET
    error: (
        Annotated[Text, Meta(description="A part of the last error, ignoring case.")] | UnsetType
    ) = UNSET
    fingerprint: (
        Annotated[Text, Meta(description="Fingerprint of the last error, from /failures.")]
        | UnsetType
    ) = UNSET
    payload: list[KeyValue] = []

    def filter(self, redact: frozenset[str]) -> Filter:
        """Return the filter; refuse a search for a redacted value."""
        given: dict[str, Any] = {
            name: value
            for name in Filter.__struct_fields__
            if (value := getattr(self, name)) is not UNSET
        }
        pairs = [_pair(pair, redact) for pair in self.payload]
        given["status"] = tuple(self.status)
        given["job_type"] = tuple(self.job_type)
        given["queue"] = tuple(self.queue)
        given["waits_for"] = tuple(self.waits_for)
        given["payload"] = tuple(pairs)
        wanted = Filter(**given)
        refuse_hidden_keys(wanted.key, wanted.limited_by, redact)
        return wanted


class JobPageQuery(JobFilter, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A filter of jobs, and a page of the result."""

    before: Annotated[UUID, Meta(description="`before` of the previous page.")] | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=1000)] = 50


def _pair(pair: str, redact: frozenset[str]) -> tuple[str, str]:
    key, _, value = pair.partition("=")
    if asks_for_hidden(key, value, redact):
        raise BadInput(f"the value of {key!r} is redacted here: filter by another key")
    return key, value
