"""Run: do the work of a claimed job, and turn however it ends into an outcome.

context.py    what a handler sees of its own job
log_lines.py  which job a log record belongs to, and how lines are written
reports.py    progress and events on their way to the store
attempt.py    how an attempt ended, as a value
threads.py    plain functions in threads
processes.py  functions in processes of their own, child.py their other end
program.py    whether such a process will find its function
hooks.py      functions of the program's own that hear how attempts begin and end
heartbeat.py  the beat, in a thread of its own; beat_process.py and beat_helper.py, a process
              that beats while a handler holds the GIL
disown.py     a task that cannot be stopped, and the end of its event loop
"""
