"""Measure: take one peer through the three phases of one stress.

A producer and a worker go on all the time. In a run with chaos the producer ends with the recovery,
and then the jobs that are left have some more time: those of killed workers have to come back.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, ExitStack
from typing import LiteralString, cast

import psycopg

from bench.adverse.open_transaction import snapshot_held
from bench.adverse.phases import SPARE, WARM_UP, Lengths, Phases, go_through, since_stress
from bench.install import Environment
from bench.measure.prepared_peer import PreparedPeer, prepare
from bench.peer import Peer, Plan
from bench.pickup_log import SENT, read_pickups, read_times
from bench.server import Postgres, RestartablePostgres
from bench.stress.chaos import chaos
from bench.stress.record import ChaosResult, StressRun
from bench.stress.stresses import Scale, Stress
from bench.stress.summary import (
    Jobs,
    history_mb,
    over_time,
    phase_results,
    table_results,
    too_slow,
)
from bench.stress.worker_slot import WorkerSlot, supervised, worker_slot
from bench.table_samples import sampling

POLL = 0.25


def measure(
    peer: Peer, environment: Environment, stress: Stress, scale: Scale, postgres: Postgres
) -> StressRun:
    """Measure one run. One that fails is kept with its problem."""
    try:
        return _measure(peer, environment, stress, scale, postgres)
    except Exception as error:  # the other peers are still measured
        return StressRun(
            peer=peer.name, stress=stress.name, problem=f"{type(error).__name__}: {error}"
        )


def _measure(
    peer: Peer, environment: Environment, stress: Stress, scale: Scale, postgres: Postgres
) -> StressRun:
    assert peer.stressed is not None
    lengths = scale.lengths
    plan = Plan(0, options={**peer.stressed.options, **stress.options})
    with ExitStack() as stack:
        prepared = stack.enter_context(prepare(peer, environment, postgres, None))
        prepared.store.make_quiet(vacuum=False)
        slot = stack.enter_context(worker_slot(prepared, plan))
        if stress.chaos:
            stack.enter_context(supervised(slot))
        disturbance = _disturbance(stress, prepared.store.address, slot, postgres, scale)
        with sampling(prepared.store.address) as samples:
            stress_ns = _go_through(prepared, slot, plan, scale.lengths, disturbance)
            if not stress.chaos:
                slot.check_alive()
        left = _wait_until_done(prepared, scale) if stress.chaos else 0
        pickups = read_pickups(slot.folder)
        jobs = Jobs(read_times(slot.folder, SENT), pickups)
    run = since_stress(lengths, stress_ns, pickups, samples)
    phases = phase_results(run, stress, jobs.answers(stress_ns))
    result = None
    if stress.chaos:
        end_ns = stress_ns + int(lengths.stress * 1e9)
        result = chaos_result(slot, jobs, left, end_ns, run)
    return StressRun(
        peer=peer.name,
        stress=stress.name,
        phases=phases,
        tables=table_results(run),
        history_mb=history_mb(run),
        over_time=over_time(run),
        chaos=result,
        notes=[
            *too_slow(phases, stress),
            *_ended(slot),
            *([_left(result, scale, peer.stressed.recovery)] if result and result.left else []),
        ],
    )


def _disturbance(
    stress: Stress, address: str, slot: WorkerSlot, postgres: Postgres, scale: Scale
) -> AbstractContextManager[None]:
    if not stress.chaos:
        return snapshot_held(address)
    assert isinstance(postgres, RestartablePostgres)
    return chaos(slot, postgres, scale)


def _go_through(
    prepared: PreparedPeer,
    slot: WorkerSlot,
    plan: Plan,
    lengths: Lengths,
    disturbance: AbstractContextManager[None],
) -> int:
    """Let the phases pass, with a producer at work; return when the stress began."""
    plan = Plan(0, options={**plan.options, "seconds": WARM_UP + lengths.total + SPARE})
    with prepared.driver("produce", plan=plan, calls_folder=slot.folder) as producer:
        producer.wait_until_ready()
        producer.send_start()
        stress_ns = go_through(lengths, disturbance)
        producer.check_alive()
    return stress_ns


def _wait_until_done(prepared: PreparedPeer, scale: Scale) -> int:
    """Wait until no job is unsettled, and return how many are left."""
    question = cast(LiteralString, prepared.peer.unfinished)
    deadline = time.monotonic() + scale.done_within
    with psycopg.connect(prepared.store.address, autocommit=True) as connection:
        while True:
            row = connection.execute(question).fetchone()
            assert row is not None
            if not (left := int(row[0])) or time.monotonic() > deadline:
                return left
            time.sleep(POLL)


def chaos_result(slot: WorkerSlot, jobs: Jobs, left: int, end_ns: int, run: Phases) -> ChaosResult:
    return ChaosResult(
        kills=slot.kills,
        ended_by_itself=len(slot.ended),
        answered=jobs.answered,
        failed=jobs.failed,
        ran_twice=jobs.ran_twice,
        never_began=jobs.never_began,
        left=left,
        lost=max(0, jobs.never_began - left),
        longest_pause=round(run.longest_pause(), 2),
        done_after=None if left or jobs.never_began else jobs.done_after(end_ns),
    )


def _ended(slot: WorkerSlot) -> list[str]:
    if not slot.ended:
        return []
    times = f"{len(slot.ended)} times" if len(slot.ended) > 1 else "once"
    return [f"its worker ended by itself {times}, and was started again: {slot.ended[-1]}"]


def _left(result: ChaosResult, scale: Scale, recovery: str) -> str:
    seconds = scale.lengths.recovery + scale.done_within
    return f"{result.left:,} jobs were not done {seconds:g} s after the stress: {recovery}"
