"""Growth, from the command line: jobs per second by batch size, concurrency, backlog, history.

    python -m bench.growth                             everything: about twenty minutes
    python -m bench.growth --only batch_size,history   only these
    python -m bench.growth --scale 0.01 --rounds 1     all, small: does it work?
    python -m bench.growth --server FOLDER             with the PostgreSQL in FOLDER

A full run also draws the charts in docs/growth/ and updates docs/guides/limits.md.
"""

from __future__ import annotations

import sys

from bench import limits
from bench.cases import exit_code, run_command_line
from bench.growth.backlog import BACKLOG
from bench.growth.batch_size import BATCH_SIZE
from bench.growth.charts import draw_charts
from bench.growth.concurrency import CONCURRENCY
from bench.growth.history import HISTORY

CASES = {case.name: case for case in (BATCH_SIZE, CONCURRENCY, BACKLOG, HISTORY)}


def main() -> int:
    record = run_command_line("growth", CASES, __doc__)
    if not record.shortened:
        draw_charts(record)
        limits.main([])
    return exit_code(record)


if __name__ == "__main__":
    sys.exit(main())
