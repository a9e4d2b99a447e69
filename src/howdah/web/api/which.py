"""Which: which jobs, as the fields of a query or of a body; the same as `observe.Filter`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from howdah.errors import BadInput
from howdah.observe import Filter
from howdah.states import State
from howdah.web.redact import asks_for_hidden

LARGEST = 2**31 - 1

Text = Annotated[str, Meta(pattern="^[^\\u0000]*$")]
Priority = Annotated[int, Meta(ge=-(2**31), le=LARGEST, description="Higher goes first.")]
Executor = Annotated[int, Meta(ge=0, le=LARGEST)]
Instant = Annotated[datetime, Meta(tz=True)]
KeyValue = Annotated[
    str,
    Meta(
        pattern="^[^=\\u0000]+=[^\\u0000]*$",
        description="`key=value`: the payload has this key with this value, as JSON or as text.",
    ),
]


class Which(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which jobs; what is left out lets all through."""

    status: list[State] = []
    job_type: list[Text] = []
    priority: Priority | UnsetType = UNSET
    worker_id: Annotated[Text, Meta(description="The last that held it.")] | UnsetType = UNSET
    attempts_from: Executor | UnsetType = UNSET
    attempts_to: Executor | UnsetType = UNSET
    created_from: Instant | UnsetType = UNSET
    created_to: Annotated[Instant, Meta(description="Before this moment.")] | UnsetType = UNSET
    error: (
        Annotated[Text, Meta(description="A part of the last error, in any case.")] | UnsetType
    ) = UNSET
    fingerprint: (
        Annotated[Text, Meta(description="Of the last error, as /failures tells it.")] | UnsetType
    ) = UNSET
    payload: list[KeyValue] = []

    def filter(self, redact: frozenset[str]) -> Filter:
        """Make the filter; who may not see a value may not look for it either."""
        given: dict[str, Any] = {
            name: value
            for name in Filter.__struct_fields__
            if (value := getattr(self, name)) is not UNSET
        }
        pairs = [_pair(one, redact) for one in self.payload]
        given["status"] = tuple(self.status)
        given["job_type"] = tuple(self.job_type)
        given["payload"] = tuple(pairs)
        return Filter(**given)


class WhichPage(Which, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which jobs, and which page of them."""

    before: (
        Annotated[UUID, Meta(description="Where the page before ended, as it told.")] | UnsetType
    ) = UNSET
    limit: Annotated[int, Meta(ge=1, le=1000)] = 50


def _pair(said: str, redact: frozenset[str]) -> tuple[str, str]:
    key, _, value = said.partition("=")
    if asks_for_hidden(key, value, redact):
        raise BadInput(f"what stands under {key!r} is hidden here, so nobody can look for it")
    return key, value
