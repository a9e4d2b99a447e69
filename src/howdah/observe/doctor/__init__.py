"""Doctor: what is wrong with the database of a queue, what it means and what to do.

check.py       one finding, and the whole diagnosis
database.py    the server: transactions, slots, connections, NOTIFY, clock
release.py     the server's version: whether a newer minor release is known
tables.py      the tables: dead rows, vacuum, partitions by day
workers.py     the workers: alive, silent, held up, upkeep; and the schema they use
limits.py      named limits that hold jobs back while nothing is at work
schedules.py   schedules that are late, stopped or orphaned

A check that this role may not do, or that takes too long, is `unknown`, not fine.
"""

from __future__ import annotations

from howdah.observe.doctor.check import Check, Diagnosis, Level, examine

__all__ = ["Check", "Diagnosis", "Level", "examine"]
