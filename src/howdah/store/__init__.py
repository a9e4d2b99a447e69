"""Store: connections to PostgreSQL, and the calls of the engine's functions.

store.py              the connections to one database, over all event loops
pool.py               the connections of one event loop
connection_limit.py   how many connections all pools together may open
dsn.py                which database to connect to
dsn_keywords.py       a DSN in libpq's keywords, as a URL
dsn_redaction.py      a DSN without its password
database_name.py      name and host of a database, for people
enqueue.py            write one job, or a stream of jobs
caller_connection.py  enqueue through the caller's own connection
completion.py         complete a job in a transaction that has other effects
claim.py              claim jobs
run.py                start, progress, events, beats
steps.py              store steps, take and send signals
settle.py             complete, retry, fail, release, hand back, cancel
upkeep.py             promote, recover, requeue, prune
steer.py              pause, resume, drain, and other actions of people
measures.py           write what workers measure
job_types.py          register the job types of workers
watch.py              read jobs by id, and mark them as followed
bench.py              the statements of `howdah bench`
query.py              read with a time limit
listen.py             receive NOTIFY
wakeup.py             sleep until a job is there
batches.py            write a batch of which one item may be refused
rows.py               a row as a Job
ids.py                make job ids
array_types.py        describe array types to asyncpg
admit.py              the rules of keys and limits
schedules.py          set, fire and register schedules
array_codecs.py       encode arrays of ids, numbers and intervals
errors.py             PostgreSQL's errors as howdah's
install.py            create and upgrade the schema
install_script.py     the install as one SQL statement
engine_files.py       the engine's SQL files, in order
"""

from __future__ import annotations

from howdah.store.store import Store

__all__ = ["Store"]
