"""Checks: check the values that callers give, before they are used.

arguments.py  names, numbers, ids and leases
durations.py  lengths of time, in seconds or as a timedelta
functions.py  functions that are registered as jobs
limit_names.py  the name of a limit that nobody has made
near_misses.py  names that were perhaps meant
queue_names.py  names of sets of job types
schedule_names.py  the name of a schedule
signals.py    names and data of signals, and the names of steps
unique.py     unique keys of jobs
"""
