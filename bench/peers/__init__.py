"""Peers: one folder for howdah and one for each job queue it is compared with.

    registry.py        all of them, in the order of the report
    howdah/            howdah itself, from this checkout
    graphile_worker/   Node on PostgreSQL
    pgqueuer/          Python on PostgreSQL
    pg_boss/           Node on PostgreSQL
    awa/               Rust and Python on PostgreSQL
    chancy/            Python on PostgreSQL
    oban/              Python on PostgreSQL
    procrastinate/     Python on PostgreSQL
    arq/               Python on Redis
    dramatiq/          Python on Redis
    celery/            Python on Redis
    saq/               Python on Redis

`PEER` in a folder's `__init__` describes the peer; its driver calls it. Nothing is imported here,
because a driver runs in an environment that has only its own peer.
"""
