"""Bad days: the same work on a good day and on a bad one, in one run, as a ratio.

    sides.py           a good and a bad database, drained in turns
    held.py            something holds a transaction open while work goes on
    crowded.py         a million jobs that are nobody's business, and five million finished ones
    varied.py          a thousand priorities, five hundred types
    never_analysed.py  plans made on an empty table, no autovacuum, then a million jobs
    mixed.py           failures, progress and cancellations among the jobs
    idle_waits.py      ten thousand waits for results in the process that hands over
    roster.py          all of them, in the order of the report

`make bench-bad-days` runs __main__.py. What is measured, and kept: cases.py and findings.py.
"""
