"""Upkeep: the part of a worker that promotes, fires schedules, admits, recovers and prunes.

upkeep.py    the loop that does one round after another
next_due.py  when the next scheduled job or schedule is due
firing.py    fire the schedules that are due
vacuum.py    a VACUUM of jobs_live where autovacuum comes too late
"""
