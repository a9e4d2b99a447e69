"""Admit: what every story must show of jobs that have a key, a limit, a unique key or an expiry.

log.py          the database's record: who was admitted when, and every version of every rule
at_work.py      the attempts that handlers ran, as long as they had their lease
slots.py        never more at work than a rule allows, for keys and for named limits
key_order.py    ordered keys: one after the other, in the order of enqueueing
rates.py        never more starts in a window than a rate allows
unique_keys.py  a unique key has one live job
expiry.py       no attempt begins after a job's expires_at

Handlers say when a job was at work. The database says who had its lease, when it was admitted,
and which versions of a rule that transaction may have read. So nothing is allowed for "about then".
"""
