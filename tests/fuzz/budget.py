"""Budget: how many examples the fuzzing gets.

`make test` gives each test a few seconds. HOWDAH_FUZZ=100 gives a hundred times the examples, new
ones in each run, and prints how to repeat a failure.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

FACTOR = float(os.environ.get("HOWDAH_FUZZ", "1"))

# Deeper runs use new examples each time; `make test` always uses the same ones.
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
