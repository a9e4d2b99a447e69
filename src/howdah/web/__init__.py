"""Web: the dashboard of a queue, as an ASGI app and as `howdah web`.

    app.py                 builds the app: `dashboard(queue, access=…)`
    serve.py               runs it as a process
    context.py             the queue, the settings and the audit line, for every request
    auth_middleware.py     authentication, same origin, CSRF token, read-only
    headers_middleware.py  security headers on every response, and the answer to a crash
    access/                the ways to authenticate
    visitor.py             marks an authenticated request; routes refuse one without the mark
    paths.py               reads the path of a request, and builds URLs
    request_body.py        reads bodies and forms with a limit
    errors.py              every error as a page or as JSON
    probes.py              `/healthz` and `/readyz`
    page.py                a route that shows a page
    pages/                 overview, jobs, job, failures, workers, types, limits, schedules, health
    live.py                sends an open page again when it changed, at a bounded cost
    cache.py               shares query results between open pages
    actions.py             what a user can do, for pages and API
    bulk/                  an action on all jobs that match, as a job
    api/                   the JSON API, with OpenAPI
    filter_form.py         a filter as a form, as a URL and as a sentence
    flash.py               one message on the next page
    render.py              templates and the filters that they use
    brief.py               the text that tells the jobs of a list apart
    charts.py              charts over time as SVG
    limit_charts.py        charts of a named limit
    json_tree.py           JSON as a tree that can be folded
    last_frame.py          the last frame of a traceback
    redact.py              hides values under configured keys
    timeline.py            the waits and attempts of a job as a bar

All data comes from `howdah.observe`, so every query has a time limit. The server renders the pages;
they can be read without JavaScript.
"""

from __future__ import annotations

from howdah.web.access import Access, AppAccess, OneTimeLink, Password, TrustedHeader
from howdah.web.app import dashboard

__all__ = ["Access", "AppAccess", "OneTimeLink", "Password", "TrustedHeader", "dashboard"]
