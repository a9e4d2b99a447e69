"""Unique keys: any order of enqueues, verbs and plain SQL, against a model in Python.

The model knows who holds each key. After every step the answer of an enqueue is compared with it,
and at most one live job that counts has each key.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from howdah.states import State
from tests.fuzz.budget import examples
from tests.support import Claimed, Database

pytestmark = pytest.mark.engine

HOUR = timedelta(hours=1)
KEYS = ("a", "b")
Step = tuple[str, Any]

drafts = st.fixed_dictionaries(
    {
        "unique_key": st.sampled_from([*KEYS, None]),
        "until": st.sampled_from(["ended", "started", "time"]),
        "on_conflict": st.sampled_from(["existing", "replace", "debounce", "error"]),
        "n": st.integers(1, 9),
    }
)
numbers = st.integers(0, 5)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("enqueue"), drafts),
        st.tuples(st.just("enqueue_many"), st.lists(drafts, min_size=1, max_size=4)),
        st.tuples(st.just("insert"), drafts),
        st.tuples(st.sampled_from(["claim", "forget", "tick"]), st.none()),
        st.tuples(st.sampled_from(["complete", "fail", "retry", "release", "plain done"]), numbers),
        st.tuples(st.sampled_from(["cancel", "requeue", "revive", "clone", "delete"]), numbers),
    ),
    max_size=25,
)  # fmt: skip


@dataclass
class ModelJob:
    id: UUID
    key: str | None
    until: str
    state: State = State.PENDING
    attempts: int = 0
    lease: Claimed | None = None

    @property
    def live(self) -> bool:
        return not self.state.finished

    @property
    def holds(self) -> bool:
        """Whether its row says that it holds its key."""
        unstarted = self.state is State.PENDING and self.attempts == 0
        return self.live and (self.until == "ended" or (self.until == "started" and unstarted))


@dataclass
class Model:
    db: Database
    now: int = 0  # hours
    jobs: dict[UUID, ModelJob] = field(default_factory=dict[UUID, ModelJob])
    keys: dict[str, tuple[UUID, int | None]] = field(
        default_factory=dict[str, tuple[UUID, int | None]]
    )

    def holder(self, key: str) -> UUID | None:
        if key not in self.keys:
            return None
        id, holds_until = self.keys[key]
        if holds_until is not None:
            return id if holds_until > self.now else None
        return id if id in self.jobs and self.jobs[id].holds else None

    def add(self, id: UUID, draft: dict[str, Any]) -> None:
        """Expect that this draft became this job, which is new or holds the key."""
        key, until = draft["unique_key"], draft["until"]
        holder = None if key is None else self.holder(key)
        if holder is not None:
            assert id == holder
            return
        assert id not in self.jobs
        self.jobs[id] = ModelJob(id, key, until)
        if key is not None:
            self.keys[key] = (id, self.now + 1 if until == "time" else None)

    def refuses(self, drafts: list[dict[str, Any]]) -> bool:
        """Whether one of them meets a holder, and asks for an error then."""
        taken: set[str] = {key for key in KEYS if self.holder(key) is not None}
        for draft in drafts:
            key = draft["unique_key"]
            if key is not None and key in taken and draft["on_conflict"] == "error":
                return True
            taken |= set() if key is None else {key}
        return False

    def nth(self, number: int, *states: State) -> ModelJob | None:
        jobs = [job for job in self.jobs.values() if job.state in states]
        return jobs[number % len(jobs)] if jobs else None

    def held(self, number: int) -> ModelJob | None:
        return self.nth(number, State.CLAIMED)

    def check(self) -> None:
        rows = self.db.rows("select id, status, attempts, unique_key from jobs")
        assert {row["id"]: (row["status"], row["attempts"], row["unique_key"]) for row in rows} == {
            job.id: (job.state, job.attempts, job.key) for job in self.jobs.values()
        }
        for key in KEYS:
            ended = [
                j for j in self.jobs.values() if j.live and j.key == key and j.until == "ended"
            ]
            assert len(ended) <= 1


def as_draft(draft: dict[str, Any]) -> dict[str, Any]:
    sent: dict[str, Any] = {"job_type": "mail", "data": {"n": draft["n"]}}
    if draft["unique_key"] is not None:
        sent |= {"unique_key": draft["unique_key"], "on_conflict": draft["on_conflict"]}
        timed = draft["until"] == "time"
        sent |= {"unique_for": "1 hour"} if timed else {"unique_until": draft["until"]}
    return sent


def enqueue(model: Model, drafts: list[dict[str, Any]], *, many: bool) -> None:
    refused = model.refuses(drafts)
    try:
        if many:
            ids = model.db.enqueue_many([as_draft(draft) for draft in drafts])
        else:
            sent = as_draft(drafts[0])
            names = {"data": "p_data", "job_type": "p_job_type", "on_conflict": "p_on_conflict"}
            given = {names.get(name, f"p_{name}"): value for name, value in sent.items()}
            given["p_data"] = f'{{"n": {drafts[0]["n"]}}}'
            text = ", ".join(f"{name} => '{value}'" for name, value in given.items())
            ids = [model.db.value(f"select howdah.enqueue({text})")]
    except Exception as error:
        assert "belongs to job" in str(error)  # noqa: PT017 - Hypothesis decides whether it raises
        assert refused
        return
    assert not refused
    for id, draft in zip(ids, drafts, strict=True):
        model.add(id, draft)


def insert(model: Model, draft: dict[str, Any]) -> None:
    key, until = draft["unique_key"], draft["until"]
    refused = key is not None and (until == "time" or model.holder(key) is not None)
    try:
        id = model.db.value(
            "insert into jobs (job_type, unique_key, unique_until) values ('mail', %s, %s) "
            "returning id",
            key,
            None if key is None else until,
        )
    except Exception as error:
        assert "unique" in str(error)  # noqa: PT017
        assert refused
        return
    assert not refused
    model.add(id, draft)


def settle(model: Model, verb: str, job: ModelJob | None) -> None:
    if job is None or job.lease is None:
        return
    lease = [job.lease]
    match verb:
        case "complete":
            model.db.complete(lease)
            job.state = State.COMPLETED
        case "plain done":
            model.db.plain("UPDATE jobs SET status='completed' WHERE id=$1", job.id)
            job.state = State.COMPLETED
        case "fail":
            model.db.fail(lease)
            job.state = State.FAILED
        case "retry":
            job.state = model.db.retry(lease)[job.id]
        case _:
            model.db.release(lease)
            job.state = State.PENDING
            job.attempts -= 1
    job.lease = None


def revive(model: Model, job: ModelJob | None, *, plain: bool) -> None:
    if job is None:
        return
    holder = None if job.key is None or job.until == "time" else model.holder(job.key)
    free = holder in (None, job.id)
    if plain:
        try:
            model.db.plain("UPDATE jobs SET status='pending' WHERE id=$1", job.id)
            moved = True
        except Exception as error:
            assert "belongs to job" in str(error)  # noqa: PT017
            moved = False
    else:
        moved = model.db.requeue(job.id) == {job.id}
    assert moved is free
    if moved:
        job.state = State.PENDING
        if job.key is not None and job.until != "time":
            model.keys[job.key] = (job.id, None)


def step(model: Model, name: str, argument: Any) -> None:
    db = model.db
    match name:
        case "enqueue":
            enqueue(model, [argument], many=False)
        case "enqueue_many":
            enqueue(model, argument, many=True)
        case "insert":
            insert(model, argument)
        case "claim":
            for claim in db.claim("mail", batch=2):
                job = model.jobs[claim.id]
                job.state, job.attempts, job.lease = State.CLAIMED, claim.attempts, claim
        case "forget":
            db.execute("select howdah.forget_unique_keys()")
        case "tick":
            db.clock.advance(HOUR)
            model.now += 1
        case "cancel":
            if (job := model.nth(argument, State.PENDING, State.CLAIMED)) is not None:
                db.cancel(job.id)
                job.state, job.lease = State.CANCELLED, None
        case "requeue" | "revive":
            job = model.nth(argument, State.FAILED, State.CANCELLED)
            revive(model, job, plain=name == "revive")
        case "clone":
            if (job := model.nth(argument, *State)) is not None:
                rows = db.rows("select clone_id from howdah.clone(array[%s]::uuid[])", job.id)
                id = rows[0]["clone_id"]
                model.jobs[id] = ModelJob(id, None, "ended")
        case "delete":
            if (job := model.nth(argument, *(s for s in State if s.finished))) is not None:
                db.execute("select howdah.delete(array[%s]::uuid[])", job.id)
                del model.jobs[job.id]
        case _:
            settle(model, name, model.held(argument))


@given(steps)
@examples(150)
def test_the_holder_of_a_key_is_the_one_that_the_model_expects(
    shared_db: Database, steps: list[Step]
) -> None:
    shared_db.execute(
        "set session_replication_role = replica; delete from jobs; delete from unique_keys; "
        "delete from finished_counts; delete from guard.leaving; reset session_replication_role"
    )
    model = Model(shared_db)
    for name, argument in steps:
        step(model, name, argument)
        model.check()
