"""Run: run the handlers of claimed jobs, and turn how they end into outcomes.

executor.py           starts attempts, and ends them in time
attempt.py            one running job
shared_task.py        runs attempts in tasks, those that never wait in one
context.py            the running job, for its handler
steps.py              steps, sleeps and waits for signals of one attempt
step_writer.py        stores steps, and reads those of earlier runs
completions.py        completes jobs in the transactions of their handlers
own_transaction.py    the transaction of ctx.transaction()
outcome_of.py         the outcome of what a handler returned or raised
thread_pool.py        plain functions in threads
process/              functions in child processes
detach_task.py        lets an event loop end without a task that cannot be stopped
reports.py            progress and events on their way to the store
flush.py              sends reports and marks attempts as running, several times a second
report_checks.py      checks of progress and events
hooks.py              calls functions of the user when attempts start and end
heartbeat.py          sends beats, from a thread
beat_process.py       starts a process that beats while a handler holds the GIL
beat_helper.py        the program of that process
type_registration.py  registers the worker's job types
measures.py           counts and times of a worker's jobs
job_logging.py        puts the job on log records, and formats log lines
"""
