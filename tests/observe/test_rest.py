"""The pause after queries keeps their share of the server's time at 2 % or less."""

from __future__ import annotations

import pytest

from howdah.observe.rest import REMEMBERED, recent_costs, rest_after


def test_the_pause_is_fifty_times_the_mean_of_the_last_costs() -> None:
    costs = recent_costs()
    assert rest_after(costs) == 0
    costs.extend([0.1, 0.3])
    assert rest_after(costs) == pytest.approx(10)
    assert rest_after(costs, share=0.5) == pytest.approx(20)


def test_only_the_last_costs_count() -> None:
    costs = recent_costs()
    costs.extend([100.0, *[0.1] * REMEMBERED])
    assert rest_after(costs) == pytest.approx(5)
