"""Process: run handlers in child processes, which can be killed.

runner.py         runs one attempt in a child, and returns its outcome
pool.py           the children of a worker
supervisor.py     sends tasks to one child, and reads how they ended
child_process.py  one child: start, write, read, kill
task.py           one job that a child runs
inbox.py          the socket from which a child takes tasks
prefetch.py       how many tasks a child may have at once
protocol.py       the messages between a worker and its children
child_main.py     the program that runs in a child
import_check.py   checks that a child can import the handlers
"""
