"""Upkeep: the part of a worker that promotes, admits, recovers and prunes.

upkeep.py    the loop that does one round after another
next_due.py  when the next scheduled job is due
vacuum.py    a VACUUM of jobs_live where autovacuum comes too late
"""
