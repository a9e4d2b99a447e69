"""Drivers: how each peer is told about keys, order, limits and rates.

    howdah_driver.py             the options of a job type
    graphile_worker_driver.mjs   named queues
    pg_boss_driver.mjs           policies and groups
    pgqueuer_driver.py           concurrency_limit of an entrypoint
    procrastinate_driver.py      locks
    dbos_driver.py               partitioned queues, concurrency and limiter
    chancy_driver.py             concurrency and rate limit of a queue
    chancy_jobs.py               its jobs, which its workers find by name

They have the verbs and the protocol of driver.py. The options `kind`, `keys` and `slots` are those
of rules.py. `enqueue_single` makes one call for each job, in order.

Nothing is imported here, because a driver runs in an environment that has only its own peer.
"""
