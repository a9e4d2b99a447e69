"""A worker registers its job types in the database."""

from __future__ import annotations

import enum
from datetime import timedelta
from typing import Annotated, Any

import msgspec
import psycopg
import pytest

from howdah import BadInput, JobContext, Queue
from howdah.handler import Handler, Rules
from howdah.run.type_registration import TypeRegistration
from howdah.text.labels import fill_label
from tests.support import Database


async def registered(queue: Queue, name: str) -> dict[str, Any]:
    rows = await queue.store.fetch(
        "select priority, max_attempts, timeout, run, parameters, signature, label, worker_id, "
        "version, first_seen_at, registered_at, last_seen_at from howdah.job_types where name = $1",
        name,
    )
    names = "priority max_attempts timeout run parameters signature label worker_id version"
    keys = [*names.split(), "first_seen_at", "registered_at", "last_seen_at"]
    (row,) = rows
    return dict(zip(keys, row, strict=True))


async def test_a_starting_worker_registers_its_types(queue: Queue) -> None:
    @queue.job(priority=30, max_attempts=1, timeout=90, label="{path} at {width}")
    async def resize(ctx: JobContext, path: str, width: int = 320) -> None: ...

    @queue.job(run="thread")
    def bare() -> None: ...

    async with queue.worker() as worker:
        row = await registered(queue, "resize")
        assert (row["priority"], row["max_attempts"]) == (30, 1)
        assert (row["timeout"], row["run"]) == (timedelta(seconds=90), "async")
        assert (row["label"], row["worker_id"]) == ("{path} at {width}", worker.id)
        assert msgspec.json.decode(row["parameters"]) == [
            {"name": "path", "type": "str", "required": True},
            {"name": "width", "type": "int", "required": False},
        ]
        bare_row = await registered(queue, "bare")
        assert (bare_row["priority"], bare_row["max_attempts"]) == (100, 3)
        assert (bare_row["timeout"], bare_row["label"], bare_row["run"]) == (None, None, "thread")


async def test_a_worker_registers_only_the_types_it_takes(queue: Queue) -> None:
    @queue.job
    async def taken() -> None: ...

    @queue.job
    async def left() -> None: ...

    async with queue.worker(job_types=["taken"]):
        assert await queue.store.fetchval("select array_agg(name) from howdah.job_types") == [
            "taken"
        ]


async def test_the_last_start_wins_and_a_running_worker_does_not_overwrite_it(dsn: str) -> None:
    async with Queue(dsn) as old, Queue(dsn) as new:

        @old.job(name="pay", max_attempts=1)
        async def pay(order: int) -> None: ...

        @new.job(name="pay", max_attempts=9)
        async def pay_more(order: int, tip: int = 0) -> None: ...

        async with old.worker() as first:
            before = await registered(old, "pay")
            async with new.worker() as second:
                await old.store.fetch(
                    "update howdah.job_types set last_seen_at = last_seen_at - interval '1 hour'"
                )
                registration = TypeRegistration(old.store, first.id, old.handlers, {})
                assert await registration.step()  # registers, as a start does
                assert (await registered(old, "pay"))["max_attempts"] == 1
                again = TypeRegistration(new.store, second.id, new.handlers, {})
                assert await again.step()
                newest = await registered(new, "pay")
                await old.store.fetch(
                    "update howdah.job_types set last_seen_at = last_seen_at - interval '1 hour'"
                )
                assert await registration.step()  # now it only updates last_seen_at
                kept = await registered(new, "pay")
    assert before["signature"] != newest["signature"]
    assert (kept["max_attempts"], kept["worker_id"]) == (9, second.id)
    assert kept["last_seen_at"] >= newest["last_seen_at"]
    assert (kept["registered_at"], kept["first_seen_at"]) == (
        newest["registered_at"],
        before["first_seen_at"],
    )


async def test_a_type_that_was_pruned_is_registered_again(queue: Queue) -> None:
    @queue.job
    async def mail() -> None: ...

    registration = TypeRegistration(queue.store, "me", queue.handlers, {})
    assert await registration.step()
    await queue.store.fetch("delete from howdah.job_types")
    assert await registration.step()
    assert (await registered(queue, "mail"))["worker_id"] == "me"


async def test_a_worker_runs_jobs_even_if_it_cannot_register_types(queue: Queue) -> None:
    @queue.job
    async def double(n: int) -> int:
        return n * 2

    await queue.store.fetch("drop function howdah.register_job_types")
    handle = await double.enqueue(n=4)
    async with queue.worker():
        assert await handle.result(timeout=20) == 8


# ── the signature ──


class Colour(enum.Enum):
    RED = "red"


class Inner(msgspec.Struct):
    a: int


def handler(function: Any) -> Handler:
    return Handler(function, JobContext, name="t", rules=Rules())


def test_the_signature_changes_with_names_types_and_required_parameters() -> None:
    def original(a: int) -> None: ...
    def the_same(ctx: JobContext, a: int) -> str: ...
    def other_type(a: str) -> None: ...
    def other_name(b: int) -> None: ...
    def not_required(a: int = 1) -> None: ...
    def one_more(a: int, b: int) -> None: ...
    def bounded(a: Annotated[int, msgspec.Meta(gt=0)]) -> None: ...

    first = handler(original).signature
    assert handler(the_same).signature == first
    others = [other_type, other_name, not_required, one_more, bounded]
    assert len({first, *(handler(other).signature for other in others)}) == 6


def test_the_signature_includes_nested_types() -> None:
    def with_inner(kind: type) -> Handler:
        def function(a: Any) -> None: ...

        function.__annotations__["a"] = kind
        return handler(function)

    changed = msgspec.defstruct("Inner", [("a", int), ("b", int)])
    same = msgspec.defstruct("Inner", [("a", int)])
    assert with_inner(Inner).signature != with_inner(changed).signature
    assert with_inner(same).signature == with_inner(same).signature


def test_a_type_without_a_schema_can_be_registered() -> None:
    class UnprintableMeta(type):
        def __repr__(cls) -> str:
            raise RuntimeError("no repr")

    class Foreign(metaclass=UnprintableMeta): ...

    def function(a: Foreign, b: list[Foreign], c: Colour) -> None: ...

    function.__annotations__ |= {"a": Foreign, "b": list[Foreign]}
    registered_handler = handler(function)
    assert registered_handler.signature
    assert [parameter.name for parameter in registered_handler.parameters] == ["a", "b", "c"]


# ── the label ──


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("{order.id}", "'{order.id}': {order.id} is not the name of a parameter"),
        ("{order[0]}", "is not the name of a parameter"),
        ("{}", "is not the name of a parameter"),
        ("{0}", "is not the name of a parameter"),
        ("{order!r}", "has a format or a conversion"),
        ("{order:>1000000}", "has a format or a conversion"),
        ("{order", "expected '}'"),
        ("order}", "Single '}'"),
        ("order", "the same for all its jobs"),
        ("{ctx}", "not a parameter (it has: order)"),
        ("{missing}", "names 'missing', which is not a parameter (it has: order)"),
        ("", "1 to 200 characters, not 0"),
        ("{order}" + "x" * 200, "1 to 200 characters, not 207"),
        ("{order}\n", "must not have control characters"),
        (3, "label of pay must be text, not int"),
    ],
)
async def test_a_label_that_is_not_a_valid_template_is_refused(label: Any, message: str) -> None:
    queue = Queue("postgresql://nowhere")
    with pytest.raises(BadInput) as refused:

        @queue.job(label=label)
        async def pay(ctx: JobContext, order: int) -> None: ...

    assert message in str(refused.value)
    assert "label of pay" in str(refused.value)
    assert not queue.handlers


def test_a_label_is_filled_with_plain_values_only() -> None:
    data: dict[str, object] = {"a": 1, "b": "x", "c": True, "d": {"deep": 1}, "e": None}
    assert fill_label("{a}/{b} {{c}} {c}", data) == "1/x {c} true"
    assert fill_label("{d}{e}{f}", data) == "………"
    assert len(fill_label("{b}", {"b": "y" * 5000}) or "") == 80


@pytest.mark.parametrize("label", [None, "{a.__class__}", "{a!r}", "{a:9999999}", "{", "x" * 300])
def test_an_invalid_label_is_not_filled(label: str | None) -> None:
    assert fill_label(label, {"a": 1}) is None


# ── in SQL ──


def register(db: Database, types: str) -> None:
    db.execute("select howdah.register_job_types('me', %s::jsonb, '1.0')", types)


@pytest.mark.engine
def test_a_worker_in_another_language_registers_with_a_name_alone(db: Database) -> None:
    register(db, '[{"name": "mail"}]')
    (row,) = db.rows("select * from howdah.job_types")
    assert (row["priority"], row["max_attempts"], row["parameters"]) == (100, 3, [])
    assert db.column("select howdah.touch_job_types(array['mail', 'other'])") == ["other"]


@pytest.mark.engine
@pytest.mark.parametrize(
    "types",
    [
        "null",
        "{}",
        '[{"name": null}]',
        '[{"name": ""}]',
        '[{"name": "a\\n"}]',
        '[{"name": "a", "max_attempts": 0}]',
        '[{"name": "a", "parameters": {}}]',
        '[{"name": "a", "label": ""}]',
        '[{"name": "a", "timeout": "-1 s"}]',
        '[{"name": "a", "label": "%s"}]' % ("x" * 201),
        '[{"name": "a", "signature": "%s"}]' % ("x" * 101),
        '[{"name": "a", "parameters": ["%s"]}]' % ("x" * 70_000),
        "[" + ",".join(['{"name": "a"}'] * 10_001) + "]",
    ],
)
def test_invalid_or_too_large_types_are_refused(db: Database, types: str) -> None:
    with pytest.raises(psycopg.Error):
        register(db, types)
    assert db.value("select count(*) from howdah.job_types") == 0


@pytest.mark.engine
def test_more_attempts_than_the_limit_are_cut_to_it(db: Database) -> None:
    register(db, '[{"name": "mail", "max_attempts": 1000000}]')
    assert db.value("select max_attempts from howdah.job_types") == 1000


@pytest.mark.engine
def test_a_type_that_no_worker_had_for_a_year_is_pruned(db: Database) -> None:
    register(db, '[{"name": "old"}, {"name": "new"}]')
    db.execute(
        "update howdah.job_types set last_seen_at = now() - interval '400 days' where name = 'old'"
    )
    db.execute("select howdah.prune()")
    assert db.column("select name from howdah.job_types") == ["new"]
