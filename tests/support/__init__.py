"""Support: helpers of all tests. tests/README.md says which one to use.

databases.py         a real PostgreSQL, and a fresh database for each test
database_pool.py     databases that tests use one after another
database.py          the SQL engine as plain calls
catalog.py           everything that a schema consists of, as a value to compare
listener.py          receives NOTIFY
background.py        runs a call in a thread
waiting.py           waits for a condition
waiting_jobs.py      jobs that sleep or wait for a signal
connection_leaks.py  finds the test that left a connection open
processes.py         `howdah worker` as a process
postgres_server.py   a server that a test may stop, crash, fill up and promote
proxy.py             a network that can fail
admission.py         what a history must show of keys, limits and rates
proxy_connection.py  one connection through that network
fleet.py             workers, producers and an inspector as processes
debian.py            installs programs that are not on PyPI
fast.py              selects the tests of `make test-fast`
"""

from __future__ import annotations

from tests.support.database import Claimed, Database, Session

__all__ = ["Claimed", "Database", "Session"]
