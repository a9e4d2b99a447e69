"""Soak: every fault again and again, done to one fleet for as long as asked.

    make soak MINUTES=30
    make soak MINUTES=1 FAULT=kill_worker

ground.py    the servers: a primary and its synchronous standby, on small disks where allowed
roster.py    every fault by name
record.py    what a run found, as it is kept in bench/records/<date>-soak/soak.json
"""
