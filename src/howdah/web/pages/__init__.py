"""Pages: one file per page, with what it looks up and what can be done there.

Each file has `pages` (what is shown) and may have `actions` (what its forms do).
"""

from __future__ import annotations

from starlette.routing import Route

from howdah.web.page import Page
from howdah.web.pages import failures, health, job, jobs, matching, overview, types, workers

_FILES = (overview, jobs, matching, job, failures, workers, types, health)


def all_pages() -> list[Page]:
    """Return every page, in the order of the menu."""
    return [page for file in _FILES for page in file.pages]


def all_actions() -> list[Route]:
    """Return what the forms of the pages send to."""
    return [action for file in _FILES for action in getattr(file, "actions", ())]
