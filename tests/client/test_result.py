"""A result has the type of the function's annotation, or an error says why it does not fit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple, NewType, Optional, TypedDict
from uuid import UUID

import msgspec
import pydantic
import pytest

from howdah import Cancel, Fail, Handle, Queue, ResultDoesNotFit, Retry, Snooze, SyncQueue
from howdah.payload import decode, encode
from howdah.result import ResultType


@dataclass
class Line:
    amount: Decimal
    due: date


@dataclass
class Receipt:
    id: UUID
    at: datetime
    lines: list[Line] = field(default_factory=list[Line])


class Order(msgspec.Struct):
    number: int
    receipt: Receipt | None = None


class Invoice(pydantic.BaseModel):
    number: int
    at: datetime


class Totals(TypedDict):
    net: Decimal
    late: timedelta


class Point(NamedTuple):
    x: int
    y: float


class Colour(Enum):
    RED = "red"


class Opaque:
    """A type that cannot be decoded from JSON."""


class Checked(msgspec.Struct):
    number: int

    def __post_init__(self) -> None:
        raise KeyError("its own check")


Cents = NewType("Cents", int)
NOW = datetime(2026, 11, 18, 5, 0, tzinfo=UTC)
RECEIPT = Receipt(UUID(int=7), NOW, [Line(Decimal("1.10"), NOW.date())])
ORDER = Order(3, RECEIPT)
INVOICE = Invoice(number=4, at=NOW)


def result_type(kind: Any) -> ResultType:
    def function() -> None: ...

    function.__annotations__["return"] = kind
    return ResultType(function)


def as_stored(value: object) -> Any:
    return decode(encode(value, "the result"))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Receipt, RECEIPT),
        (Order, ORDER),
        (Invoice, INVOICE),
        (Totals, {"net": Decimal("2.5"), "late": timedelta(hours=1)}),
        (Point, Point(1, 2.0)),
        (Colour, Colour.RED),
        (Cents, 5),
        (datetime, NOW),
        (date, NOW.date()),
        (UUID, UUID(int=9)),
        (Decimal, Decimal("0.1")),
        (bytes, b"\x00\xff"),
        (timedelta, timedelta(seconds=3)),
        (float, 1.0),
        (set[int], {1, 2}),
        (tuple[int, str], (1, "a")),
        (list[Receipt], [RECEIPT, RECEIPT]),
        (list[Invoice], [INVOICE]),
        (dict[int, Order], {1: ORDER}),
        (Mapping[str, UUID], {"a": UUID(int=1)}),
        (Optional[Receipt], None),  # noqa: UP045
        (Receipt | None, RECEIPT),
        (Invoice | None, INVOICE),
        (Annotated[int, "cents"], 5),
        (Literal["a", "b"], "b"),
        (int | str, "x"),
        # one decoder cannot distinguish these; the type that gives the same JSON again is chosen
        (Receipt | Order, RECEIPT),
        (Receipt | Order, ORDER),
        (Order | Invoice | None, INVOICE),
        (Order | Invoice | None, None),
        (datetime | Receipt | Totals, NOW),
        # outcomes such as Retry are not part of the result type
        (Receipt | Retry, RECEIPT),
        (Receipt | Retry | Fail | Snooze | Cancel, RECEIPT),
        (Receipt | None | Cancel, None),
        # a plain function that returns an awaitable
        (Awaitable[Receipt], RECEIPT),
        (Coroutine[Any, Any, Receipt | Retry], RECEIPT),
    ],
)
def test_a_result_is_decoded_as_annotated(kind: Any, value: object) -> None:
    decoded = result_type(kind).decode(as_stored(value), "job")
    assert decoded == value
    assert type(decoded) is type(value)


@pytest.mark.parametrize(
    "kind",
    [Any, None, object, Opaque, list[Opaque], Opaque | None, Retry, Callable[[], int], "Unknown"],
)
def test_a_result_stays_plain_if_the_annotation_cannot_be_decoded(kind: Any) -> None:
    for value in ({"a": [1, "2"]}, "text") if kind != list[Opaque] else ([1], []):
        assert result_type(kind).decode(value, "job") == value


def test_a_function_without_annotation_returns_plain_json() -> None:
    assert ResultType(lambda: None).decode({"a": 1}, "job") == {"a": 1}


@pytest.mark.parametrize(
    ("kind", "value", "reason"),
    [
        (Receipt, {"id": 1}, "Expected `uuid`, got `int` - at `\\$.id`"),
        (Receipt, None, "Expected `object`, got `null`"),
        (int, "7", "Expected `int`, got `str`"),
        (Invoice, {"number": "x"}, "Invoice"),
        (Checked, {"number": 1}, "its own check"),
        (Receipt | Order, {"number": "x"}, "missing required field `id`"),
        (Receipt | Order, {"number": 1, "more": 2}, "missing required field `id`"),
    ],
)
def test_a_result_that_does_not_fit_raises_with_the_reason_and_the_value(
    kind: Any, value: object, reason: str
) -> None:
    with pytest.raises(
        ResultDoesNotFit, match=f"^the result of job 1 does not fit .*{reason}"
    ) as e:
        result_type(kind).decode(value, "job 1")
    assert "handle.job()" in str(e.value)
    assert e.value.result == value


async def test_a_handle_returns_the_annotated_type(queue: Queue) -> None:
    @queue.job
    async def pay(n: int) -> Receipt | Retry:
        return RECEIPT

    @queue.job
    def bill() -> Invoice:
        return INVOICE

    @queue.job
    async def wrong() -> int:
        return "seven"  # pyright: ignore[reportReturnType]

    async with queue.worker():
        paid = await pay.enqueue(n=1)
        assert await paid.result(20) == RECEIPT
        assert await (await bill.enqueue()).result(20) == INVOICE
        assert await queue.handle(paid.id).result(20) == RECEIPT
        assert await (await queue.enqueue("pay", {"n": 2})).result(20) == RECEIPT
        assert (await paid.job()).result == as_stored(RECEIPT)
        wrong_handle = await wrong.enqueue()
        with pytest.raises(
            ResultDoesNotFit, match=rf"job {wrong_handle.id} \(wrong\) .* int: Expected `int`"
        ):
            await wrong_handle.result(20)
        assert (await wrong_handle.job()).result == "seven"
        assert (await wrong_handle.job()).status == "completed"


async def test_a_handle_of_an_unregistered_type_returns_plain_json(queue: Queue, dsn: str) -> None:
    @queue.job
    async def pay() -> Receipt:
        return RECEIPT

    async with queue.worker(), Queue(dsn) as other_queue:
        handle: Handle[Any] = other_queue.handle((await pay.enqueue()).id)
        assert await handle.result(20) == as_stored(RECEIPT)


def test_the_sync_client_returns_the_same(dsn: str) -> None:
    with SyncQueue(dsn) as queue:

        @queue.job
        def pay() -> list[Receipt]:
            return [RECEIPT]

        with queue.worker():
            paid = pay.enqueue()
            assert paid.result(20) == [RECEIPT]
            assert queue.handle(paid.id).result(20) == [RECEIPT]
            assert paid.job().result == as_stored([RECEIPT])
