"""Forms: send a form as a page would send it."""

from __future__ import annotations

import httpx


async def send(
    client: httpx.AsyncClient, path: str, fields: list[tuple[str, str]] | None = None
) -> httpx.Response:
    """Send a form with the CSRF token of a page."""
    html = (await client.get("/jobs")).text
    csrf_token = html.split('name="howdah-csrf-token" content="')[1].split('"')[0]
    data: dict[str, list[str]] = {"csrf_token": [csrf_token]}
    for name, value in fields or []:
        data.setdefault(name, []).append(value)
    return await client.post(path, data=data)


def flash_text(answer: httpx.Response) -> str:
    """Return the flash message of an action."""
    assert answer.status_code == 303, answer.text
    return httpx.QueryParams(f"flash={answer.cookies['howdah_flash']}")["flash"]
