"""Registration: options and functions are checked when they are registered."""

from __future__ import annotations

import functools
import math
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from howdah import Backoff, BadInput, JobContext, Queue, SyncQueue


async def work() -> None: ...


def plain() -> None: ...


@pytest.fixture
def queue() -> Queue:
    return Queue("postgresql://nobody@127.0.0.1:1/never-opened")


def rules(queue: Queue, **options: Any) -> Any:
    return queue.job(**options)(work).handler.rules


# ── options ───────────────────────────────────────────────────────────────────────────────


def test_a_duration_is_seconds_or_a_timedelta(queue: Queue) -> None:
    checked = rules(queue, timeout=90, backoff=Backoff(first=2, cap=60))
    assert checked.timeout == timedelta(seconds=90)
    assert checked.backoff == Backoff(first=timedelta(seconds=2), cap=timedelta(minutes=1))


@pytest.mark.parametrize("given", [5, 5.0, timedelta(seconds=5)])
def test_a_duration_as_backoff_is_its_first_wait(queue: Queue, given: Any) -> None:
    assert rules(queue, backoff=given).backoff == Backoff(first=timedelta(seconds=5))


def test_the_default_cap_does_not_cut_a_long_first_wait(queue: Queue) -> None:
    backoff = rules(queue, backoff=timedelta(hours=3)).backoff
    assert backoff.cap == timedelta(hours=3)
    assert Backoff(first=7200, jitter=0).after(1) == timedelta(hours=2)
    assert Backoff(first=7200, cap=60, jitter=0).after(1) == timedelta(minutes=1)


def test_a_backoff_waits_at_any_attempt() -> None:
    for factor in (1, 2, 1e6):
        assert Backoff(factor=factor, jitter=0).after(2**31) <= timedelta(hours=1)
    assert Backoff(first=1, factor=1.01, jitter=0).after(1000) == timedelta(hours=1)


@pytest.mark.parametrize("name", ["retry_on", "fail_on"])
@pytest.mark.parametrize(
    "given", [OSError, (OSError,), [OSError], {OSError}], ids=["class", "tuple", "list", "set"]
)
def test_exceptions_are_a_class_or_a_collection(queue: Queue, name: str, given: Any) -> None:
    assert getattr(rules(queue, **{name: given}), name) == (OSError,)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"timeout": "5m"}, r"^timeout must be a .*not '5m': write timedelta\(minutes=5\) or 300$"),
    ({"timeout": 0}, "^timeout must be longer than 0, not 0$"),
    ({"timeout": -1}, "^timeout=-1 is negative"),
    ({"timeout": math.nan}, "^timeout=nan is not a length"),
    ({"timeout": True}, "^timeout must be a timedelta .* not True"),
    ({"backoff": "5s"}, r"^backoff must be a .*not '5s': write timedelta\(seconds=5\) or 5"),
    ({"backoff": -5}, "^backoff=-5 is negative"),
    ({"backoff": math.inf}, "^backoff=inf is not a length"),
    ({"backoff": True}, "^backoff must be .* not True"),
    ({"backoff": Backoff}, r"^backoff must be a Backoff, .*write Backoff\(first=2\)"),
    (
        {"retry_on": ValueError()},
        r"^retry_on takes exception classes, .* ValueError\(\): write retry_on=Val",
    ),
    ({"retry_on": [OSError, ValueError("x")]}, r"not the exception ValueError\('x'\)"),
    (
        {"retry_on": "OSError"},
        "^retry_on must be an exception class .*not 'OSError': write retry_on=OSError or",
    ),
    ({"retry_on": None}, "^retry_on must be an exception class or a list of them, not None"),
    ({"retry_on": int}, "^retry_on must be an exception class .*not <class 'int'>"),
    ({"retry_on": [[OSError]]}, "^retry_on must be an exception class .*not "),
    ({"fail_on": ValueError()}, "^fail_on takes exception classes, .*: write fail_on=ValueError"),
    ({"fail_on": None}, "^fail_on must be an exception class .*not None"),
    ({"max_attempts": True}, "^max_attempts must be a whole number, not True"),
    ({"max_attempts": None}, "^max_attempts must be a whole number, not None"),
    ({"priority": "high"}, "^priority must be a whole number, not 'high'"),
    ({"run": "fork"}, "run must be .*not 'fork'"),
    ({"name": 7}, "a job type must be text, not int"),
    ({"name": ""}, "a job type must have 1 to 200 characters"),
]


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_a_wrong_option_is_refused_at_once_and_named(
    queue: Queue, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        queue.job(**options)(work)
    assert not queue.handlers


WRONG_BACKOFFS: list[tuple[dict[str, Any], str]] = [
    ({"first": "2s"}, r"^first in Backoff\(…\) must be a timedelta .*not '2s'"),
    ({"first": -2}, r"^first=-2 in Backoff\(…\) is negative"),
    ({"first": math.nan}, r"^first=nan in Backoff\(…\) is not a length"),
    ({"first": True}, "^first in .*not True"),
    ({"first": timedelta(days=4000)}, "^first in .* no longer than 365 days"),
    ({"cap": "1h"}, r"^cap in .*not '1h': write timedelta\(hours=1\) or 3600"),
    ({"cap": math.inf}, r"^cap=inf in Backoff\(…\) is not a length"),
    ({"factor": 0.5}, "^factor in .* must be between 1 and 1e[+]06, not 0.5"),
    ({"factor": math.nan}, "^factor in .*not nan"),
    ({"factor": "2"}, "^factor in .* must be a number from 1 to 1e[+]06, not '2'"),
    ({"factor": True}, "^factor in .*not True"),
    ({"jitter": 1.5}, "^jitter in .* must be between 0 and 1, not 1.5"),
    ({"jitter": -0.1}, "^jitter in .*not -0.1"),
    ({"jitter": None}, "^jitter in .*not None"),
]


@pytest.mark.parametrize(("options", "message"), WRONG_BACKOFFS)
def test_a_wrong_backoff_is_refused_at_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Backoff(**options)


# ── functions ─────────────────────────────────────────────────────────────────────────────


class Shop:
    def sell(self, item: str) -> None: ...

    @classmethod
    def close(cls) -> None: ...

    @staticmethod
    def static(item: str) -> None: ...

    def __call__(self, item: str) -> None: ...


def counts(n: int) -> Iterator[int]:
    yield from range(n)


async def counts_async(n: int) -> AsyncIterator[int]:
    yield n


def unannotated(ctx, path: str) -> None:  # type: ignore[no-untyped-def]
    ...


def unannotated_late(path: str, ctx=None) -> None:  # type: ignore[no-untyped-def]
    ...


def unannotated_context(context, path: str) -> None:  # type: ignore[no-untyped-def]
    ...


def perhaps(ctx: JobContext | None, path: str) -> None: ...


def twice(ctx: JobContext, other: JobContext) -> None: ...


def two_texts(at: datetime | UUID) -> None: ...


def two_objects(n: int, to: dict[str, int] | Backoff) -> None: ...


def deep_union(n: int, items: list[date | str]) -> None: ...


def no_type(n: "1 +") -> None:  # type: ignore # noqa: F722
    ...


FUNCTIONS: dict[str, tuple[Any, str]] = {
    "a name": ("mail", r"^@queue.job takes the name .*: write @queue.job\(name='mail'\)$"),
    "a number": (7, "^@queue.job registers a function, not 7: write it above a def$"),
    "a lambda": (lambda: None, "^a lambda has no name .*: write a function with def"),
    "a generator": (counts, "^counts contains yield, .* return a list"),
    "an async generator": (counts_async, "^counts_async contains yield"),
    "a partial": (functools.partial(plain), r"^a functools.partial has no name .* with def"),
    "a class": (Shop, "^Shop is a class, not a function: write a function with def"),
    "an object": (Shop(), "^an object of Shop has no name .*: write a function with def"),
    "a bound method": (Shop().sell, "^Shop.sell is a method: .*outside the class, or put @static"),
    "a method": (Shop.sell, "^Shop.sell is a method, its first parameter is self: "),
    "a class method": (Shop.__dict__["close"], "^Shop.close: write @staticmethod above"),
    "a static method": (Shop.__dict__["static"], "^Shop.static: write @staticmethod above"),
    "a builtin": (print, "^print: a payload has named arguments only"),
    "no annotation": (unannotated, "^unannotated: ctx has no .* Write ctx: JobContext .*import"),
    "no annotation, later": (unannotated_late, "^unannotated_late: ctx has no annotation"),
    "no annotation, long": (unannotated_context, "Write context: JobContext"),
    "an optional context": (perhaps, "^perhaps: ctx is always given: annotate it as JobContext"),
    "two contexts": (twice, "^twice: ctx and other are both annotated JobContext: remove one"),
    "a union": (
        two_texts,
        "^two_texts: at: datetime.datetime | uuid.UUID cannot be decoded from JSON: JS",
    ),
    "a union of objects": (
        two_objects,
        "^two_objects: to: .*Backoff cannot be decoded from JSON: JSON",
    ),
    "a union inside": (deep_union, "^deep_union: items: .* one of them alone"),
    "no type": (no_type, "^no_type has an annotation that is not a type: SyntaxError"),
}


@pytest.mark.parametrize(("function", "message"), FUNCTIONS.values(), ids=list(FUNCTIONS))
@pytest.mark.parametrize("named", [False, True], ids=["bare", "named"])
def test_a_function_that_cannot_be_a_job_is_refused_with_advice(
    queue: Queue, function: Any, message: str, named: bool
) -> None:
    register: Any = queue.job(name="given") if named else queue.job
    with pytest.raises(BadInput, match=message):
        register(function)
    assert not queue.handlers


def test_a_sync_queue_refuses_the_same() -> None:
    sync: Any = SyncQueue("postgresql://nobody@127.0.0.1:1/never-opened")
    with pytest.raises(BadInput, match=r"write @queue.job\(name='mail'\)"):
        sync.job("mail")
    with pytest.raises(BadInput, match="retry_on takes exception classes"):
        sync.job(retry_on=ValueError())


def test_a_coroutine_is_refused_and_closed(queue: Queue) -> None:
    register: Any = queue.job
    with pytest.raises(BadInput, match=r"^work\(\) is a coroutine, .*register work itself"):
        register(work())  # if it is not closed, its warning fails the test


def test_a_job_type_is_not_registered_twice(queue: Queue) -> None:
    done: Any = queue.job(work)
    with pytest.raises(
        BadInput, match=r"work is registered as job type 'work' already: .*\.function"
    ):
        queue.job(name="again")(done)
    assert queue.job(name="again")(done.function).name == "again"


def test_a_nested_function_is_no_process_handler(queue: Queue) -> None:
    def nested(n: int) -> int:
        return n

    with pytest.raises(BadInput, match=r'nested is defined inside a function: run="process" needs'):
        queue.job(run="process")(nested)
    assert queue.job(nested).handler.run == "thread"


def test_a_static_method_is_a_job(queue: Queue) -> None:
    class Post:
        @staticmethod
        @queue.job
        def send(to: str) -> str:
            return to

    assert Post.send.name == "send"
    assert Post.send("you") == "you"


def test_a_function_that_was_wrapped_is_a_job(queue: Queue) -> None:
    @queue.job
    @functools.cache
    def cached(n: int) -> int:
        return n

    assert cached.draft(n=1).data == '{"n":1}'


@pytest.mark.parametrize("given", [1, 0.5, timedelta(seconds=1), None])
def test_annotations_with_a_default_are_still_jobs(queue: Queue, given: Any) -> None:
    @queue.job(timeout=given)
    async def mail(to: str, at: datetime | None = None, tags: list[str] | None = None) -> None: ...

    assert mail.draft(to="you", at=datetime(2030, 1, 1, tzinfo=UTC)).job_type == "mail"
