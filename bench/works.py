"""Works: what is measured, in the order of the report.

A rate is in jobs per second and more is better; a pickup is a time and less is better.
Payloads have 100 bytes, handlers do nothing, every peer keeps of finished jobs what it keeps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["enqueue", "drain", "floor", "pickup"]


@dataclass(frozen=True, slots=True)
class Work:
    name: str
    kind: Kind
    title: str


WORKS = {
    work.name: work
    for work in (
        Work("enqueue_bulk", "enqueue", "bulk enqueue"),
        Work("enqueue_single", "enqueue", "single enqueue"),
        Work("drain_1", "drain", "drain, one process"),
        Work("drain_2", "drain", "drain, two processes"),
        Work("drain_16", "drain", "drain, 16 processes"),
        Work("threads", "drain", "plain functions in threads"),
        Work("processes", "drain", "functions in processes"),
        Work("floor", "floor", "bare statements, two connections"),
        Work("pickup", "pickup", "pickup when idle"),
    )
}
