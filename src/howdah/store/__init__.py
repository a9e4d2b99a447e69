"""Store: the only room that knows PostgreSQL.

address.py   which database, and how to say so without its password
store.py     connections: opened late, checked once, given back
enqueue.py   drafts on their way in, one or a stream
call.py      one function per other verb of the engine
listen.py    being told instead of asking
install.py   making and upgrading the schema
bundle.py    the engine's SQL files, in order
script.py    the install as one SQL statement
refusals.py  what the server refuses, in howdah's own errors
borrowed.py  enqueueing through the caller's own connection
"""

from __future__ import annotations

from howdah.store.store import Store

__all__ = ["Store"]
