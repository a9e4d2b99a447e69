"""Growth: how many jobs per second, as one thing grows and the rest stays.

    over.py         measure at every step, up and down in turns
    batch_size.py   jobs per enqueue_many and per claim
    concurrency.py  jobs at work at once in one worker
    backlog.py      jobs that wait
    history.py      finished jobs that are kept
    pages.py        the pictures in docs/growth/

`make bench-growth` runs __main__.py. What is measured, and kept: cases.py and findings.py.
"""
