"""Stress: howdah and its peers under the same stresses, side by side in one run.

    stresses.py     what disturbs a peer, how its jobs come, how long each phase lasts
    measure.py      take one peer through the phases of one stress
    worker_slot.py  the worker process, which may be killed and is started again
    chaos.py        kill the worker every few seconds, and restart the server once
    summary.py      what one run showed
    record.py       the results of a run
    report.py       the results as Markdown
    charts.py       the results as pictures

`make bench-stress` runs __main__.py. The phases are those of bench/adverse/phases.py.
"""
