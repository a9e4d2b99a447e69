"""Command line: the program `howdah`, for people and for scripts.

    commands.py       all commands in one group; errors become exit codes
    options.py        the options that commands share, and how their values are parsed
    output.py         prints data to stdout and messages to stderr
    exit_codes.py     what the exit codes mean
    run_on_queue.py   opens the queue of a command
    formatting.py     states, times and progress as text
    payload.py        reads a payload, and compares it with its type
    results.py        what happened to the jobs of cancel and requeue
    log.py            the options of commands that write a log
    load.py           imports the queue that MODULE:QUEUE names
    forced_exit.py    ends a worker process whose handlers do not stop
    health.py         answers the probes of a worker over HTTP
    hide_password.py  keeps the password of --dsn out of `ps`

The commands, one module or folder each:

    demo/             shows howdah in half a minute
    dev/              runs a worker and the dashboard during development
    worker.py         runs jobs
    enqueue.py        enqueues one job
    web.py            serves the dashboard
    schedules/        lists, sets, pauses and removes schedules
    limits.py         lists, sets and removes named limits
    jobs.py           lists jobs
    show.py           shows one job
    watch.py          follows one job
    why.py            says why a job does not run
    stats.py          counts jobs and lists workers
    keys.py           counts the jobs of a type by key
    top.py            shows the queue live in a terminal
    doctor.py         checks the queue for problems
    metrics.py        prints metrics for Prometheus
    cancel.py         cancels jobs
    requeue.py        runs failed or cancelled jobs again
    signal.py         sends a signal to a job
    pause.py          pauses job types
    resume.py         resumes job types
    recover.py        takes jobs back from silent workers
    install.py        creates or upgrades the schema
    sql.py            prints the SQL of the engine
    pg.py             manages the embedded server
    bench/            measures the speed of a database
    completion.py     prints the script for shell completion

Commands call the functions of `Queue` and observe/; they contain no SQL.
"""

from __future__ import annotations

from howdah.cli.commands import main

__all__ = ["main"]
