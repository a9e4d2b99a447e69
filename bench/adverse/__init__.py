"""Adverse: the same work with and without a disturbance, in one run, as a ratio.

    pair.py              a baseline database and an adverse one, drained in turns
    regime.py            how fast jobs come, how long the line is, how many types there are
    phases.py            a clean phase, one under stress and the recovery, in one run
    open_transaction.py  a transaction stays open while jobs come and go, in many regimes
    dead_rows.py         what people read beside a million dead rows
    server_restart.py    the server is away for a while under load
    unrelated_jobs.py    a million jobs of others, due later, or five million finished ones
    many_lanes.py        a thousand priorities, five hundred types
    never_analysed.py    plans made on an empty table, no autovacuum, then a million jobs
    mixed.py             failures, progress and cancellations among the jobs
    idle_waits.py        ten thousand waits for results in the process that enqueues
    registry.py          all cases, in the order of the report

`make bench-adverse` runs __main__.py. cases.py runs the cases, case_record.py keeps the results.
"""
