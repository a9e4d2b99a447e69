"""API: the same questions and actions as the pages, as JSON, described by OpenAPI.

    call.py       one call: declared once, by a function's name, parameters and answer
    asked.py      what a request asks for, read and checked
    written.py    answers as JSON: exact numbers, lengths of time in seconds
    which.py      which jobs, as fields of a query or of a body
    looks.py      questions about the queue; jobs.py, about jobs
    acts.py       what can be done
    described.py  the table of calls as OpenAPI 3.1; about.py, as a page for people

Every error is `{"error": {"status": 400, "message": "…"}}`.
"""

from __future__ import annotations

from howdah.web.api.about import routes

__all__ = ["routes"]
