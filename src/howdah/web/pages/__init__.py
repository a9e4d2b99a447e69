"""Pages: one module per page, with its queries and its actions.

    overview.py  all types, problems first
    jobs.py      the list of jobs by filter, and actions on the selected ones
    matching.py  confirms an action on all jobs that match
    job.py       one job
    failures.py  errors, grouped
    workers.py   all workers, and one
    types.py     all types, and one
    limits.py    the named limits and the rules of types, and one limit
    schedules.py the schedules, their firings, and pause, resume, run now
    health.py    the checks of `howdah doctor`
    history.py   the charts of the overview, of a type and of a limit; not a page itself

Each module has `pages` (what is shown) and may have `actions` (the targets of its forms).
"""

from __future__ import annotations

from starlette.routing import Route

from howdah.web.page import PageRoute
from howdah.web.pages import (
    failures,
    health,
    job,
    jobs,
    limits,
    matching,
    overview,
    schedules,
    types,
    workers,
)

_MODULES = (overview, jobs, matching, job, failures, workers, types, limits, schedules, health)


def all_pages() -> list[PageRoute]:
    """Return every page, in the order of the menu."""
    return [page for module in _MODULES for page in module.pages]


def all_actions() -> list[Route]:
    """Return the routes that the forms of the pages post to."""
    return [action for module in _MODULES for action in getattr(module, "actions", ())]
