"""API: the queries and actions of the pages as JSON, described by OpenAPI.

    endpoint.py       one path and method, declared by a function
    params.py         reads and checks the query and the body of a request
    filters.py        a job filter as fields of a query or a body
    json_encoding.py  answers as JSON: exact numbers, durations in seconds
    queries.py        queries about the queue, its types and workers
    jobs.py           queries about jobs
    limits.py         queries about limits and rules, and changes to them
    schedules.py      queries about schedules, and pause, resume, run now
    actions.py        what a program can do
    openapi.py        all endpoints as an OpenAPI 3.1 document
    docs_page.py      the same as a page, and the routes of the API

Every error is `{"error": {"status": 400, "message": "…"}}`.
"""

from __future__ import annotations

from howdah.web.api.docs_page import routes

__all__ = ["routes"]
