"""Client: what people import and call.

queue.py        the queue, async
registry.py     which function does which type of job
job_type.py     a registered function: enqueue, draft, options
handle.py       one job: its result, its events, cancel
follow.py       hears how jobs change, many over one connection
sync.py         the queue without await, written by `make sync`
sync_bridge.py  what a sync queue and everything it hands out share
portal.py       the event-loop thread on which sync code runs async calls
loop.py         the fastest event loop of this platform
"""
