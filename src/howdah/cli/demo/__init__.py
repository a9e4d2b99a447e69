"""howdah demo: the product in half a minute, on a PostgreSQL of its own.

    jobs      the job types, as any program would write them
    crew      real worker processes, one of which is killed
    play      hand over, cancel, kill -9, until all jobs have ended
    news      what happened, told from what the queue says
    screen    live on a terminal, plain lines elsewhere
    promises  whether the database says what was promised

Nothing is staged: what is shown is read back from the queue, and the exit code says whether
the promises held.
"""

from __future__ import annotations

from howdah.cli.demo.command import demo

__all__ = ["demo"]
