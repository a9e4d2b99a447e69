"""Checks: values that callers give, checked where they arrive.

arguments.py  names, numbers, ids and leases
durations.py  lengths of time, in seconds or as a timedelta
functions.py  what can be registered as a job
"""
