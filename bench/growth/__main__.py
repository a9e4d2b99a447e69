"""Growth, from the command line: jobs per second against batch size, concurrency, backlog, history.

    python -m bench.growth                             everything: some twenty minutes
    python -m bench.growth --only batch_size,history   these
    python -m bench.growth --scale 0.01 --rounds 1     all, small: does it work?
    python -m bench.growth --server FOLDER             the PostgreSQL whose programs are in FOLDER

A full run also draws the pictures in docs/growth/ and fills in docs/guides/limits.md.
"""

from __future__ import annotations

import sys

from bench import limits
from bench.cases import command, exit_code
from bench.growth.backlog import BACKLOG
from bench.growth.batch_size import BATCH_SIZE
from bench.growth.concurrency import CONCURRENCY
from bench.growth.history import HISTORY
from bench.growth.pages import draw

CASES = {case.name: case for case in (BATCH_SIZE, CONCURRENCY, BACKLOG, HISTORY)}


def main() -> int:
    account = command("growth", CASES, __doc__)
    if not account.shortened:
        draw(account)
        limits.main([])
    return exit_code(account)


if __name__ == "__main__":
    sys.exit(main())
