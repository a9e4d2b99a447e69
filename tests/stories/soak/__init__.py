"""Soak: every fault again and again, injected into one fleet for a given time.

    make soak MINUTES=30
    make soak MINUTES=1 FAULT=kill_worker

servers.py         a primary and its synchronous standby, on small disks if it may mount them
fault_registry.py  every fault by name
record.py          the results of a run: the format of bench/records/<date>-soak/soak.json
"""
