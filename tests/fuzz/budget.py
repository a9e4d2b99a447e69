"""Budget: how much of the fuzzing a run gets.

`make test` gets a few seconds of each. HOWDAH_FUZZ=100 gives a hundred times the examples, each
run with other ones, and prints how to see a failure again.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

FACTOR = float(os.environ.get("HOWDAH_FUZZ", "1"))

# Deeper runs draw anew each time; the runs of `make test` are the same for everybody.
_ALIKE = FACTOR == 1

_slow = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.function_scoped_fixture]


def examples(count: int) -> settings:
    """Return the settings of a fuzz test that looks at so many examples in `make test`."""
    return settings(
        max_examples=max(1, round(count * FACTOR)),
        derandomize=_ALIKE,
        database=None,
        deadline=None,
        print_blob=True,
        suppress_health_check=_slow,
    )
