"""Bad days, from the command line: how much of a good day is left on a bad one.

    python -m bench.bad_days                                 every bad day: some forty minutes
    python -m bench.bad_days --only snapshot,mixed           these
    python -m bench.bad_days --scale 0.05 --minutes 0.5      all, small and short: does it work?
    python -m bench.bad_days --server FOLDER                 the PostgreSQL in FOLDER

The exit code is 1 when a target was missed or something could not be measured.
"""

from __future__ import annotations

import sys

from bench.bad_days.roster import CASES
from bench.cases import command, exit_code

if __name__ == "__main__":
    sys.exit(exit_code(command("bad-days", CASES, __doc__)))
