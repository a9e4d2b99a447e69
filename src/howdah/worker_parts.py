"""WorkerParts: build the parts of a worker, and connect them.

Each part is built once and gets what it needs; the claim loop is built last, because it starts the
others' work. The parts share `InHand` and know nothing else of each other.
"""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from uuid import UUID

import msgspec

from howdah.admit import Limit
from howdah.claim.loop import ClaimLoop
from howdah.claim.unacknowledged import UnacknowledgedClaims
from howdah.handler import Handler
from howdah.in_hand import InHand
from howdah.outcomes import Ending
from howdah.run.completions import Completions
from howdah.run.executor import Attempt, Executor
from howdah.run.flush import Flusher
from howdah.run.heartbeat import Heartbeat
from howdah.run.hooks import HookCalls, Hooks
from howdah.run.measures import Measures
from howdah.run.reports import Reports
from howdah.run.step_writer import StepWriter
from howdah.run.type_registration import TypeRegistration
from howdah.settle import OnSettled, Settler
from howdah.states import State, Verb
from howdah.store import Store
from howdah.store.schedules import Plan
from howdah.upkeep.upkeep import Upkeep
from howdah.version import VERSION


class WorkerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker was asked to be, checked."""

    worker_id: str
    handlers: Mapping[str, Handler]
    concurrency: int
    batch_size: int
    threads: int
    processes: int
    poll: timedelta
    grace: timedelta
    silent_after: timedelta
    stale_after: timedelta
    upkeep_every: timedelta
    hooks: Hooks | None
    limits: Mapping[str, Limit]
    plans: Sequence[Plan]  # the schedules that the code declares
    code_types: Sequence[str]  # all types of the code, also those that this worker does not take
    log_jobs: bool

    @property
    def job_types(self) -> list[str]:
        """The types of jobs that the worker takes."""
        return sorted(self.handlers)

    @property
    def ordered_types(self) -> list[str]:
        """The types whose jobs run one after the other in each key."""
        return [name for name in self.job_types if self.handlers[name].ordered]

    @property
    def limited_types(self) -> list[str]:
        """The types of which fewer may run at once than there are slots: those in threads."""
        if self.threads >= self.concurrency:
            return []
        return [name for name in self.job_types if self.handlers[name].run == "thread"]

    @property
    def slotted_types(self) -> frozenset[str]:
        """The types whose jobs wait for a slot of a key or a limit, in no fixed order."""
        rules = {name: handler.rules.keys for name, handler in self.handlers.items()}
        return frozenset(
            name
            for name, rule in rules.items()
            if not rule.ordered and (rule.key is not None or rule.limit is not None)
        )


class WorkerParts:
    """The parts of one running worker. Must be built in its event loop."""

    def __init__(self, store: Store, options: WorkerOptions, on_drain: Callable[[], None]) -> None:
        worker_id = options.worker_id
        self._options = options
        self.in_hand: InHand[Attempt] = InHand(options.concurrency, options.threads)
        self.hook_calls: HookCalls | None = HookCalls(options.hooks) if options.hooks else None
        self.unacknowledged: UnacknowledgedClaims = UnacknowledgedClaims(
            store, worker_id, self.in_hand.leases
        )
        self.measures: Measures = Measures(store, worker_id, on_drain)
        self.type_registration: TypeRegistration = TypeRegistration(
            store,
            worker_id,
            options.handlers,
            options.limits,
            options.plans,
            options.code_types,
        )
        self.upkeep: Upkeep = Upkeep(
            store, worker_id, every=options.upkeep_every, stale_after=options.stale_after
        )
        self.completions: Completions = Completions(store, worker_id, self.in_hand)
        self.step_writer: StepWriter = StepWriter(store, worker_id)
        self.reports: Reports = Reports(self.step_writer)
        self.reports.completions = self.completions
        self.executor: Executor = Executor(
            options.handlers,
            self.in_hand,
            self.reports,
            self.completions,
            processes=options.processes,
            tracing=store.tracing,
            hooks=self.hook_calls,
        )
        self.flusher: Flusher = Flusher(
            store, worker_id, self.in_hand, self.executor, self.reports, options.silent_after
        )
        self.completions.flush = self.flusher.flush_before_completion
        self.settler: Settler = Settler(
            store,
            worker_id,
            self.in_hand,
            self.flusher.flush,
            self._release_unanswered,
            self._on_settled(),
            slotted=options.slotted_types,
            ruled=options.slotted_types.union(options.ordered_types),
            log_jobs=options.log_jobs,
        )
        self.heartbeat: Heartbeat = Heartbeat(
            store,
            worker_id,
            every=options.silent_after / 5,
            silent_after=options.silent_after,
            info=self.info,
            leases=self.in_hand.running_leases,
            on_lost=self.executor.lose,
            types_at_work=self.executor.types,
            held_up_limit=options.stale_after,
        )
        self.claim_loop: ClaimLoop = ClaimLoop(
            store,
            worker_id,
            options.job_types,
            options.limited_types,
            options.ordered_types,
            self.in_hand,
            self.executor,
            self.unacknowledged,
            self.measures,
            batch_size=options.batch_size,
            poll=options.poll,
            silent_after=options.silent_after,
            on_change=self.flusher.check_leases,
            on_due=self.upkeep.received,
        )
        self.settler.claim_along = self.claim_loop.claim_along
        self.leaving: bool = False

    def _on_settled(self) -> Sequence[OnSettled]:
        if (hook_calls := self.hook_calls) is None:
            return [self.measures.settled]

        def call_hooks(
            _verb: Verb, endings: Sequence[Ending], moved: dict[UUID, State | None], _at: float
        ) -> None:
            hook_calls.settled(endings, moved)

        return [self.measures.settled, call_hooks]

    def _release_unanswered(self) -> None:
        """Look for the jobs of a release that got no answer."""
        self.unacknowledged.suspect()
        self.in_hand.on_room()

    def info(self) -> str:
        """Describe this worker for people. Also called in the heartbeat's thread."""
        options, in_hand = self._options, self.in_hand
        return msgspec.json.encode(
            {
                "host": socket.gethostname(),
                "pid": os.getpid(),
                "version": VERSION,
                "python": platform.python_version(),
                "slots": options.concurrency,
                "threads": in_hand.thread_limit,
                "threads_busy": in_hand.in_threads,
                "thread_types": options.limited_types,
                "ahead": self.claim_loop.ahead,
                "running": len(in_hand.running),
                "job_types": options.job_types,
                "leaving": self.leaving,
                **({"held_up": held_up} if (held_up := self.heartbeat.held_up) else {}),
            }
        ).decode()
