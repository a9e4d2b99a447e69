"""Client: the classes that programs import and call.

queue.py        the queue, async
registry.py     the functions of a queue by job type
schedule_registration.py  the decorators that declare schedules
schedules.py    lists, sets, pauses and removes schedules
job_type.py     a registered function: enqueue, draft, options
handle.py       one job: its result, its events, cancel
matching.py     acts on every job that matches a filter
follow.py       receives changes of many jobs over one connection
sync.py         the queue without await, written by `make sync`
sync_bridge.py  the async queue behind a sync queue
portal.py       the event-loop thread on which sync code runs async calls
loop.py         the fastest event loop of this platform
"""
