"""Workloads: what is measured, in the order of the report.

Most results are rates in jobs per second: more is better. A pickup is a time: less is better.
Payloads have 100 bytes, and handlers do nothing, except that those of `drain_sleep` sleep for a
millisecond. Drains, the bare statements and pickups begin on a
quiet server, except `drain_after_load`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["enqueue", "drain", "drain_after_load", "floor", "pickup"]


@dataclass(frozen=True, slots=True)
class Workload:
    name: str
    kind: Kind
    title: str


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("enqueue_bulk", "enqueue", "bulk enqueue"),
        Workload("enqueue_single", "enqueue", "single enqueue"),
        Workload("drain_1", "drain", "drain, one process"),
        Workload("drain_2", "drain", "drain, two processes"),
        Workload("drain_16", "drain", "drain, 16 processes"),
        Workload("drain_after_load", "drain_after_load", "drain, straight after the load"),
        Workload("threads", "drain", "plain functions in threads"),
        Workload("processes", "drain", "functions in processes"),
        Workload("drain_sleep", "drain", "drain, jobs of 1 ms"),
        Workload("floor", "floor", "bare statements, two connections"),
        Workload("pickup", "pickup", "pickup when idle"),
    )
}
