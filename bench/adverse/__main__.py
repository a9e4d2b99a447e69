"""Adverse conditions, from the command line: how much of the baseline's speed is left.

    python -m bench.adverse                                 every case: about 80 minutes
    python -m bench.adverse --only snapshot,mixed           only these
    python -m bench.adverse --scale 0.05 --minutes 0.5      all, small and short: does it work?
    python -m bench.adverse --server FOLDER                 with the PostgreSQL in FOLDER

The exit code is 1 when a target was missed or a case could not be measured.
"""

from __future__ import annotations

import sys

from bench.adverse.registry import CASES
from bench.cases import exit_code, run_command_line

if __name__ == "__main__":
    sys.exit(exit_code(run_command_line("adverse", CASES, __doc__)))
