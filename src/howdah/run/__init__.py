"""Run: do the work of a claimed job, and turn however it ends into an outcome.

context.py    what a handler sees of its own job
reports.py    progress and events on their way to the store
attempt.py    how an attempt ended, as a value
threads.py    plain functions in threads
processes.py  functions in processes of their own, child.py their other end
program.py    whether such a process will find its function
heartbeat.py  the beat, in a thread that no handler can stop
"""
