"""Growth: jobs per second while one thing grows and everything else stays the same.

    sweep.py        measure at every step, up and down in turns
    batch_size.py   jobs per enqueue_many and per claim
    concurrency.py  jobs that one worker runs at a time
    backlog.py      jobs that wait
    history.py      finished jobs that are kept
    charts.py       the charts in docs/growth/

`make bench-growth` runs __main__.py. cases.py runs the cases, case_record.py keeps the results.
"""
