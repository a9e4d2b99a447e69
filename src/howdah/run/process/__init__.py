"""Process: handlers in processes of their own, which can be killed.

runner.py         runs one attempt in a process, and makes its outcome
pool.py           the child processes of a worker
supervisor.py     gives tasks to one child, and learns how they ended
child_process.py  one child: started, written to, read from, killed
task.py           one job on its way through a child
inbox.py          the socket from which a child takes tasks
prefetch.py       how many tasks a child may have at once
protocol.py       the messages between a worker and its children
child_main.py     the program that runs in a child
import_check.py   whether a child will find the functions that it is to run
"""
