"""Web: the dashboard of a queue, as an ASGI app and as `howdah web`.

    app.py        puts the parts together: `dashboard(queue, access=…)`
    answer.py     what every answer carries, also one that says no
    gate.py       who may enter, and what a foreign page may not make them do
    probes.py     whether it lives and can work, for everybody who asks
    visitor.py    the mark of whom the gate let in; routes refuse without it
    paths.py      where a request points to, read in one way for the gate and the routes
    access/       ways to know who it is: a one-time link, a password, a proxy, your own app
    desk.py       what every page stands on: the queue, the settings, the audit line
    page.py       a page: what it looks up, how it is drawn, what it is called
    live.py       a page that is left open is drawn again when it changed, and not too often
    actions.py    what a person may do, one list for the pages and the API
    bulk.py       the same on all jobs that match, as a job with its own progress
    pages/        overview, jobs, job, failures, workers, types, health
    api/          the same as JSON, described by OpenAPI
    charts.py     how it was over time, as SVG
    brief.py      one line that tells a job of a list from the others
    last_frame.py where an error was raised
    draw.py       words, numbers, times and JSON as HTML

Everything that is shown comes from `howdah.observe`, so no page can cost the database more than
its time limit. Pages are drawn by the server and can be read without JavaScript.
"""

from __future__ import annotations

from howdah.web.access import Access, Mine, OneTimeLink, Password, TrustedHeader
from howdah.web.app import dashboard

__all__ = ["Access", "Mine", "OneTimeLink", "Password", "TrustedHeader", "dashboard"]
