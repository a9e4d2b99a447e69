"""Admit: keys, order, limits, rates and fair share, measured against plain jobs and against peers.

    rules.py        what limits the jobs of a drain
    peers.py        which of these each peer has, and its settings for it
    drivers/        how each peer is told
    handler.py      what a job does, in every Python driver
    sizes.py        how much a run measures
    variants.py     a peer in an empty database, told about one rule
    turns.py        drains and pickups, in turns
    snapshot.py     drains under a held snapshot, in turns with drains without one
    rate.py         starts per second, and how far they exceed the rate in any window
    claim.py        a claim beside a million jobs that wait for one key
    fair.py         the first job of a tenant behind 200,000 of another one
    exactness.py    most at once, and order violations, from the logs of the handlers
    check.py        jobs of a millisecond in two processes, for exactness.py
    record.py       the results of a run
    bars.py         what howdah has to reach
    report.py       the record as Markdown
    guide.py        writes the tables of docs/guides/comparison.md from a record

The command line is in `__main__`. Rates are compared within a turn, as in bench/turns.py.
"""
