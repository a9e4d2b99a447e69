"""Measure: run one workload once with one peer, and check that every job ran once.

    workload.py          choose the function for a workload
    prepared_peer.py     a peer, installed in an empty store
    store.py             the empty store: a new database, or an emptied Redis
    usage.py             CPU time and WAL of a measured interval
    enqueue.py           enqueue jobs, in bulk or one by one
    run.py               claim, run and settle waiting jobs with the peer's own workers
    claim_and_settle.py  the claim and settle statements alone, without a worker
    pickup.py            from the enqueue call to the first line of the handler
    workers.py           the worker processes of a measurement

Every peer is measured alike. Each measurement has a new database, or an emptied Redis, and begins
on a quiet server: autovacuum, the checkpointer and background saves have nothing left to do. It
raises `InvalidMeasurement` if jobs were lost, ran twice or are left over.
"""
